//! What works element by element beside arithmetic: functions of one tensor, comparisons, bits, choices; and the kernels' names
//! for them.

use insula_core::{DType, Result};
use insula_kernels::elementwise::{Bitwise, Broadcast, Comparison, bitwise, compare, select};
use insula_kernels::unary::{Function, apply};
use insula_kernels::{Activation, Isa, Number};
use insula_model::op::{self, Elementwise};

use super::FLAT_ELEMENTS;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Elements that a function likes to have at once: whole cache lines.
const GRANULES: Granules = Granules { good: 4096, least: 64 };

/// Operations that an element is worth: when it takes an exponential, and when it takes a comparison.
const FUNCTION_WORK: usize = 16;
const ELEMENT_WORK: usize = 4;

/// The kernels' name for `activation`.
pub(in crate::cpu) fn activation(activation: op::Activation) -> Activation {
    match activation {
        op::Activation::Relu => Activation::Relu,
        op::Activation::LeakyRelu { slope } => Activation::LeakyRelu { slope },
        op::Activation::Clip { min, max } => Activation::Clip { min, max },
        op::Activation::Sigmoid => Activation::Sigmoid,
        op::Activation::HardSigmoid { alpha, beta } => Activation::HardSigmoid { alpha, beta },
        op::Activation::HardSwish => Activation::HardSwish,
        op::Activation::Swish { alpha } => Activation::Swish { alpha },
        op::Activation::Gelu => Activation::Gelu,
        op::Activation::GeluTanh => Activation::GeluTanh,
        op::Activation::Tanh => Activation::Tanh,
    }
}

fn function(function: op::Function) -> Function {
    match function {
        op::Function::Abs => Function::Absolute,
        op::Function::Neg => Function::Negate,
        op::Function::Sign => Function::Sign,
        op::Function::Exp => Function::Exponential,
        op::Function::Log => Function::Logarithm,
        op::Function::Sqrt => Function::SquareRoot,
        op::Function::Reciprocal => Function::Reciprocal,
        op::Function::Erf => Function::ErrorFunction,
        op::Function::Floor => Function::Floor,
        op::Function::Ceil => Function::Ceiling,
        op::Function::Round => Function::Round,
        op::Function::Sin => Function::Sine,
        op::Function::Cos => Function::Cosine,
        op::Function::Tan => Function::Tangent,
        op::Function::Asin => Function::ArcSine,
        op::Function::Acos => Function::ArcCosine,
        op::Function::Atan => Function::ArcTangent,
        op::Function::Sinh => Function::HyperbolicSine,
        op::Function::Cosh => Function::HyperbolicCosine,
        op::Function::Asinh => Function::AreaSine,
        op::Function::Acosh => Function::AreaCosine,
        op::Function::Atanh => Function::AreaTangent,
        op::Function::Elu { alpha, scale, divisor } => Function::Elu { alpha, scale, divisor },
        op::Function::Softplus => Function::Softplus,
        op::Function::Softsign => Function::Softsign,
        op::Function::Mish => Function::Mish,
        op::Function::ThresholdedRelu { threshold } => Function::ThresholdedRelu { threshold },
        op::Function::Shrink { threshold, bias } => Function::Shrink { threshold, bias },
    }
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: Elementwise) -> Result<Box<dyn Step>> {
    match op {
        Elementwise::Function(op) => lower_function(lowering, function(op)),
        Elementwise::Compare(comparison) => lower_pairs(lowering, PairOp::Compare(kernel_comparison(comparison))),
        Elementwise::Bitwise(bitwise) => lower_pairs(lowering, PairOp::Bitwise(kernel_bitwise(bitwise))),
        Elementwise::Where => lower_choice(lowering),
        Elementwise::BitCast { .. } => Ok(Box::new(BitCastStep)),
    }
}

pub(in crate::cpu) fn lower_activation(lowering: &Lowering<'_>, op: op::Activation) -> Result<Box<dyn Step>> {
    lower_function(lowering, Function::Activation(activation(op)))
}

#[derive(Debug)]
struct FunctionStep {
    isa: Isa,
    number: Number,
    function: Function,
    tiles: SharedTiles,
}

fn lower_function(lowering: &Lowering<'_>, function: Function) -> Result<Box<dyn Step>> {
    let output = lowering.output()?;
    let number = lowering.number(output.dtype)?;
    if !function.is_for(number) {
        return Err(broken(format!("{} has no {function:?}", output.dtype)));
    }
    let tiles = SharedTiles::new(lowering.threads, output.shape.elements(), FUNCTION_WORK, GRANULES);
    Ok(Box::new(FunctionStep { isa: lowering.isa, number, function, tiles }))
}

impl Step for FunctionStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (input, size) = (tensors.input(0)?, self.number.size());
        let StepTensors { output, threads, .. } = tensors;
        self.tiles.each(threads, stop, output, &mut [], |elements, output, _| {
            let bytes = elements.start * size..elements.end * size;
            apply(self.isa, self.function, self.number, &input[bytes], output);
            Ok(())
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum PairOp {
    Compare(Comparison),
    Bitwise(Bitwise),
}

fn kernel_comparison(comparison: op::Comparison) -> Comparison {
    match comparison {
        op::Comparison::Equal => Comparison::Equal,
        op::Comparison::Less => Comparison::Less,
        op::Comparison::LessOrEqual => Comparison::LessOrEqual,
        op::Comparison::Greater => Comparison::Greater,
        op::Comparison::GreaterOrEqual => Comparison::GreaterOrEqual,
    }
}

fn kernel_bitwise(bitwise: op::Bitwise) -> Bitwise {
    match bitwise {
        op::Bitwise::And => Bitwise::And,
        op::Bitwise::Or => Bitwise::Or,
        op::Bitwise::Xor => Bitwise::ExclusiveOr,
        op::Bitwise::ShiftLeft => Bitwise::ShiftLeft,
        op::Bitwise::ShiftRight => Bitwise::ShiftRight,
    }
}

#[derive(Debug)]
struct PairStep {
    op: PairOp,
    number: Number,
    broadcast: Broadcast,
    tiles: Tiles,
}

fn lower_pairs(lowering: &Lowering<'_>, op: PairOp) -> Result<Box<dyn Step>> {
    let (a, b) = (lowering.input(0)?, lowering.input(1)?);
    let keep_last = lowering.output()?.shape.elements() > FLAT_ELEMENTS;
    let broadcast = Broadcast::new(a.shape.dims(), b.shape.dims(), keep_last)
        .ok_or_else(|| broken(format!("{} and {} do not broadcast", a.shape, b.shape)))?;
    let tiles = Tiles::new(broadcast.rows(), broadcast.columns() * ELEMENT_WORK, 1);
    Ok(Box::new(PairStep { op, number: lowering.number(a.dtype)?, broadcast, tiles }))
}

impl Step for PairStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let operands = (tensors.input(0)?, tensors.input(1)?);
        self.tiles.each(stop, |rows| {
            match self.op {
                PairOp::Compare(op) => compare(op, self.number, &self.broadcast, rows, operands, tensors.output),
                PairOp::Bitwise(op) => bitwise(op, self.number, &self.broadcast, rows, operands, tensors.output),
            }
            Ok(())
        })
    }
}

#[derive(Debug)]
struct ChoiceStep {
    size: usize,
    broadcast: Broadcast<3>,
    tiles: Tiles,
}

fn lower_choice(lowering: &Lowering<'_>) -> Result<Box<dyn Step>> {
    let shapes = [lowering.input(0)?, lowering.input(1)?, lowering.input(2)?].map(|operand| operand.shape.dims());
    let output = lowering.output()?;
    let size = element_bytes(output.dtype)?;
    let broadcast = Broadcast::of(shapes, output.shape.elements() > FLAT_ELEMENTS)
        .ok_or_else(|| broken(format!("{shapes:?} do not broadcast")))?;
    let tiles = Tiles::new(broadcast.rows(), broadcast.columns() * ELEMENT_WORK, 1);
    Ok(Box::new(ChoiceStep { size, broadcast, tiles }))
}

fn element_bytes(dtype: DType) -> Result<usize> {
    dtype.size().ok_or_else(|| broken("its elements vary in size"))
}

impl Step for ChoiceStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let operands = (tensors.input(0)?, tensors.input(1)?, tensors.input(2)?);
        self.tiles.each(stop, |rows| {
            select(self.size, &self.broadcast, rows, operands, tensors.output);
            Ok(())
        })
    }
}

#[derive(Debug)]
struct BitCastStep;

impl Step for BitCastStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        if input.len() != tensors.output.len() {
            let found = tensors.output.len();
            return Err(ExecError::misfit(format!("{} bytes to read as {found}", input.len())));
        }
        tensors.output.copy_from_slice(input);
        Ok(())
    }
}
