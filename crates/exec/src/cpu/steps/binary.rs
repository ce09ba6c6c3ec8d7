//! Arithmetic of two tensors: of halves and floats with what is fused to it, of other types alone.

use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::elementwise::{Arithmetic, Binary, Broadcast, arithmetic};
use insula_kernels::{Activation, Isa, Number};
use insula_model::BinaryOp;

use super::FLAT_ELEMENTS;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::floats_mut;
use crate::error::ExecError;

/// Operations that an element is worth: of the four basic ones, and of those that take a division or a logarithm.
const ELEMENT_WORK: usize = 4;
const SLOW_ELEMENT_WORK: usize = 64;

#[derive(Debug)]
struct BinaryStep {
    isa: Isa,
    dtype: DType,
    arithmetic: Arithmetic,
    broadcast: Broadcast,
    bias: Option<Arc<[f32]>>,
    activation: Activation,
    tiles: SharedTiles,
}

#[derive(Debug)]
struct TypedStep {
    number: Number,
    arithmetic: Arithmetic,
    broadcast: Broadcast,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: BinaryOp) -> Result<Box<dyn Step>> {
    let (arithmetic, work) = match op {
        BinaryOp::Add => (Arithmetic::Add, ELEMENT_WORK),
        BinaryOp::Sub => (Arithmetic::Subtract, ELEMENT_WORK),
        BinaryOp::Mul => (Arithmetic::Multiply, ELEMENT_WORK),
        BinaryOp::Div => (Arithmetic::Divide, ELEMENT_WORK),
        BinaryOp::Pow => (Arithmetic::Power, SLOW_ELEMENT_WORK),
        BinaryOp::Mod => (Arithmetic::Modulo, SLOW_ELEMENT_WORK),
        BinaryOp::Fmod => (Arithmetic::Remainder, SLOW_ELEMENT_WORK),
        BinaryOp::Max => (Arithmetic::Maximum, ELEMENT_WORK),
        BinaryOp::Min => (Arithmetic::Minimum, ELEMENT_WORK),
        BinaryOp::PRelu => (Arithmetic::Rectify, ELEMENT_WORK),
    };
    let (bias, output) = (lowering.bias()?, lowering.output()?);
    let keep_last = bias.is_some() || output.shape.elements() > FLAT_ELEMENTS;
    let (a, b) = (lowering.input(0)?.shape.dims(), lowering.input(1)?.shape.dims());
    let broadcast =
        Broadcast::new(a, b, keep_last).ok_or_else(|| broken(format!("{a:?} and {b:?} do not broadcast")))?;
    let (rows, row_work) = (broadcast.rows(), broadcast.columns() * work);
    let (isa, dtype, activation) = (lowering.isa, output.dtype, lowering.activation());
    if matches!(dtype, DType::Fp16 | DType::Fp32) {
        let tiles = SharedTiles::new(lowering.threads, rows, row_work, Granules::ANY);
        return Ok(Box::new(BinaryStep { isa, dtype, arithmetic, broadcast, bias, activation, tiles }));
    }
    if bias.is_some() || activation != Activation::None {
        return Err(broken(format!("something is fused to arithmetic of {dtype}")));
    }
    let tiles = Tiles::new(rows, row_work, 1);
    Ok(Box::new(TypedStep { number: lowering.number(dtype)?, arithmetic, broadcast, tiles }))
}

impl Step for BinaryStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (a, b) = (tensors.floats(0, self.dtype)?, tensors.floats(1, self.dtype)?);
        let BinaryStep { isa, arithmetic, broadcast, activation, .. } = *self;
        let binary = Binary { isa, arithmetic, broadcast, bias: self.bias.as_deref(), activation };
        let StepTensors { output, threads, .. } = tensors;
        self.tiles.each(threads, stop, output, &mut [], |rows, output, _| {
            binary.run(rows, a, b, floats_mut(self.dtype, output)?);
            Ok(())
        })
    }
}

impl Step for TypedStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let operands = (tensors.input(0)?, tensors.input(1)?);
        self.tiles.each(stop, |rows| {
            arithmetic(self.arithmetic, self.number, &self.broadcast, rows, operands, tensors.output);
            Ok(())
        })
    }
}
