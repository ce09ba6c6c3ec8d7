//! Recurrent layers: both directions one after the other, step by step.

use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::recurrent::{
    Cell, GateFunction, Recurrent, RecurrentFilters, RecurrentMemory, RecurrentShape, RecurrentWeights,
    recurrent_filter_floats,
};
use insula_kernels::{Floats, Isa};
use insula_model::{LogicalPlan, RecurrentCell, RecurrentInputs};

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::{floats_mut, typed, typed_mut};
use crate::cpu::weights::is_packed;
use crate::error::ExecError;

/// Rows of the input that the kernel likes to have at once.
const GRANULE: usize = 96;

#[derive(Debug)]
struct RecurrentStep {
    isa: Isa,
    dtype: DType,
    shape: RecurrentShape,
    layer: insula_model::Recurrent,
    /// `None`: the weights are operands, packed at each run.
    weights: Option<Arc<RecurrentWeights>>,
    /// Of the input's projection.
    tiles: Tiles,
}

/// The kernel's sizes for a recurrent layer of `plan`.
pub(in crate::cpu) fn recurrent_shape(
    plan: &LogicalPlan,
    step: &insula_model::Step,
    layer: &insula_model::Recurrent,
) -> Result<RecurrentShape> {
    let (Some(input), Some(output)) = (step.inputs.first(), plan.buffers.get(step.output.index())) else {
        return Err(broken("an operand is missing"));
    };
    let (&[outer, inner, features], &[.., hidden]) = (input.shape.dims(), output.shape.dims()) else {
        return Err(broken("its input has not three dimensions"));
    };
    let (steps, batch) = if layer.batch_first { (inner, outer) } else { (outer, inner) };
    let cell = match layer.cell {
        RecurrentCell::Plain => Cell::Plain,
        RecurrentCell::Gru { linear_before_reset } => Cell::Gru { linear_before_reset },
        RecurrentCell::Lstm { input_forget } => Cell::Lstm { input_forget },
    };
    let (directions, batch_first) = (layer.directions.len(), layer.batch_first);
    Ok(RecurrentShape { cell, steps, batch, input: features, hidden, directions, batch_first })
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, layer: &insula_model::Recurrent) -> Result<Box<dyn Step>> {
    let shape = recurrent_shape(lowering.plan, lowering.step, layer)?;
    let weights = match is_packed(lowering.step, 1) {
        true => Some(lowering.weights.recurrent(lowering.step)?),
        false => None,
    };
    let row_work = shape.input * shape.hidden * shape.cell.gates();
    let tiles = Tiles::new(shape.rows(), row_work, GRANULE);
    let (isa, dtype) = (lowering.isa, lowering.output()?.dtype);
    Ok(Box::new(RecurrentStep { isa, dtype, shape, layer: layer.clone(), weights, tiles }))
}

/// The operands of a run.
struct Operands<'a> {
    input: Floats<'a>,
    weights: Option<[Floats<'a>; 2]>,
    bias: Option<Floats<'a>>,
    lengths: Option<&'a [i32]>,
    hidden: Option<Floats<'a>>,
    cell: Option<Floats<'a>>,
    peepholes: Option<Floats<'a>>,
}

impl Step for RecurrentStep {
    fn scratch_bytes(&self) -> usize {
        self.filter_bytes().saturating_add(RecurrentMemory::bytes(&self.shape))
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let operands = self.operands(&tensors)?;
        let StepTensors { output, scratch, .. } = tensors;
        let (filters, scratch) = scratch.split_at_mut(self.filter_bytes());
        let weights = match (&self.weights, operands.weights) {
            (Some(weights), _) => weights.filters(),
            (None, Some([input, state])) => {
                let to = &mut typed_mut::<f32>(filters)?[..recurrent_filter_floats(&self.shape)];
                RecurrentFilters::pack(&self.shape, input, state, to)
            }
            (None, None) => return Err(ExecError::misfit("the weights are missing")),
        };
        for (direction, attributes) in self.layer.directions.iter().enumerate() {
            let layer = Recurrent {
                isa: self.isa,
                shape: self.shape,
                direction,
                reverse: attributes.reverse,
                weights,
                bias: operands.bias,
                peepholes: operands.peepholes,
                functions: attributes.functions.map(gate_function),
                clip: self.layer.clip,
                lengths: operands.lengths,
            };
            let mut memory = RecurrentMemory::new(&self.shape, scratch);
            layer.start(&mut memory, operands.hidden, operands.cell);
            self.tiles.each(stop, |rows| {
                layer.project(rows, operands.input, &mut memory);
                Ok(())
            })?;
            for step in 0..self.shape.steps {
                if stop.should_stop() {
                    return Err(ExecError::Stopped);
                }
                layer.step(step, &mut memory, floats_mut(self.dtype, output)?);
            }
            layer.finish(&memory, floats_mut(self.dtype, output)?);
        }
        Ok(())
    }
}

impl RecurrentStep {
    /// Bytes of weights that are packed at each run, rounded up to cache lines.
    fn filter_bytes(&self) -> usize {
        match self.weights {
            Some(_) => 0,
            None => recurrent_filter_floats(&self.shape).saturating_mul(size_of::<f32>()).next_multiple_of(64),
        }
    }

    fn operands<'a>(&self, tensors: &StepTensors<'a>) -> Result<Operands<'a>, ExecError> {
        let mut next = 0;
        let mut bytes = |there: bool| {
            if !there {
                return Ok(None);
            }
            next += 1;
            tensors.input(next - 1).map(Some)
        };
        let floats =
            |bytes: Option<&'a [u8]>| bytes.map(|bytes| crate::cpu::tensor::floats(self.dtype, bytes)).transpose();
        let RecurrentInputs { bias, lengths, hidden, cell, peepholes } = self.layer.inputs;
        let input = floats(bytes(true)?)?.ok_or_else(|| ExecError::misfit("the input is missing"))?;
        let unpacked = self.weights.is_none();
        let weights = floats(bytes(unpacked)?)?.zip(floats(bytes(unpacked)?)?).map(<[Floats<'a>; 2]>::from);
        let bias = floats(bytes(bias)?)?;
        let lengths = bytes(lengths)?.map(typed::<i32>).transpose()?;
        let (hidden, cell) = (floats(bytes(hidden)?)?, floats(bytes(cell)?)?);
        Ok(Operands { input, weights, bias, lengths, hidden, cell, peepholes: floats(bytes(peepholes)?)? })
    }
}

/// The kernels' name for a function.
fn gate_function(function: insula_model::GateFunction) -> GateFunction {
    match function {
        insula_model::GateFunction::Relu => GateFunction::Relu,
        insula_model::GateFunction::Tanh => GateFunction::Tanh,
        insula_model::GateFunction::Sigmoid => GateFunction::Sigmoid,
        insula_model::GateFunction::Affine(alpha, beta) => GateFunction::Affine(alpha, beta),
        insula_model::GateFunction::LeakyRelu(alpha) => GateFunction::LeakyRelu(alpha),
        insula_model::GateFunction::ThresholdedRelu(alpha) => GateFunction::ThresholdedRelu(alpha),
        insula_model::GateFunction::ScaledTanh(alpha, beta) => GateFunction::ScaledTanh(alpha, beta),
        insula_model::GateFunction::HardSigmoid(alpha, beta) => GateFunction::HardSigmoid(alpha, beta),
        insula_model::GateFunction::Elu(alpha) => GateFunction::Elu(alpha),
        insula_model::GateFunction::Softsign => GateFunction::Softsign,
        insula_model::GateFunction::Softplus => GateFunction::Softplus,
    }
}
