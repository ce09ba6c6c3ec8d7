//! Transposed convolution with what is fused to it.

use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::conv_transpose::{
    ConvTranspose, ConvTransposeFilters, ConvTransposeShape, ConvTransposeWeights, conv_transpose_filter_floats,
    conv_transpose_scratch_bytes,
};
use insula_kernels::{Activation, Floats, Isa, Window};
use insula_model::{LogicalPlan, Source};

use super::window::volume;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::{floats_mut, typed_mut};
use crate::error::ExecError;

/// Output pixels that the kernel likes to have at once.
const GRANULE: usize = 192;

#[derive(Debug)]
struct ConvTransposeStep {
    isa: Isa,
    dtype: DType,
    shape: ConvTransposeShape,
    /// `None`: the weight is an operand, laid out at each run.
    weights: Option<Arc<ConvTransposeWeights>>,
    bias: Option<Arc<[f32]>>,
    activation: Activation,
    tiles: Tiles,
}

/// The kernel's sizes for a transposed convolution of `plan`.
pub(in crate::cpu) fn conv_transpose_shape(
    plan: &LogicalPlan,
    step: &insula_model::Step,
    conv: &insula_model::ConvTranspose,
) -> Result<ConvTransposeShape> {
    let (Some(image), Some(output)) = (step.inputs.first(), plan.buffers.get(step.output.index())) else {
        return Err(broken("an operand is missing"));
    };
    let (input, output) = (image.shape.dims(), output.shape.dims());
    let (Some(small), Some(large)) = (volume(input), volume(output)) else {
        return Err(broken("its images have not three to five dimensions"));
    };
    let insula_model::ConvTranspose { kernel, strides, dilations, pads, groups, .. } = *conv;
    let window = Window { input: large, output: small, kernel, strides, dilations, pads };
    let (channels, filters) = (input[input.len() - 1], output[output.len() - 1]);
    Ok(ConvTransposeShape { window, channels, filters, groups })
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, conv: &insula_model::ConvTranspose) -> Result<Box<dyn Step>> {
    let shape = conv_transpose_shape(lowering.plan, lowering.step, conv)?;
    let weights = match lowering.input(1)?.source {
        Source::Constant(id) => Some(lowering.weights.transposed_filters(id, &shape)?),
        Source::Input(_) | Source::Buffer(_) => None,
    };
    let images = lowering.input(0)?.shape.dims()[0];
    let taps = shape.window.taps().div_ceil(shape.window.strides.iter().product::<usize>().max(1));
    let row_work = taps * shape.channels / shape.groups.max(1) * shape.filters;
    Ok(Box::new(ConvTransposeStep {
        isa: lowering.isa,
        dtype: lowering.output()?.dtype,
        shape,
        weights,
        bias: lowering.bias()?,
        activation: lowering.activation(),
        tiles: Tiles::new(shape.rows(images), row_work, GRANULE),
    }))
}

impl Step for ConvTransposeStep {
    fn scratch_bytes(&self) -> usize {
        self.filter_bytes().saturating_add(conv_transpose_scratch_bytes(&self.shape))
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let weight = if self.weights.is_none() { Some(tensors.floats(1, self.dtype)?) } else { None };
        let StepTensors { output, scratch, .. } = tensors;
        let (filters, scratch) = scratch.split_at_mut(self.filter_bytes());
        let (weights, bias) = (self.filters(weight, filters)?, self.bias.as_deref());
        let conv = ConvTranspose { isa: self.isa, shape: self.shape, weights, bias, activation: self.activation };
        self.tiles.each(stop, |rows| {
            conv.run(rows, input, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}

impl ConvTransposeStep {
    /// Bytes of a weight that is laid out at each run, rounded up to cache lines.
    fn filter_bytes(&self) -> usize {
        match self.weights {
            Some(_) => 0,
            None => conv_transpose_filter_floats(&self.shape).saturating_mul(size_of::<f32>()).next_multiple_of(64),
        }
    }

    fn filters<'a>(
        &'a self,
        weight: Option<Floats<'_>>,
        to: &'a mut [u8],
    ) -> Result<ConvTransposeFilters<'a>, ExecError> {
        match (&self.weights, weight) {
            (Some(weights), _) => Ok(weights.filters()),
            (None, Some(weight)) => {
                let to = &mut typed_mut::<f32>(to)?[..conv_transpose_filter_floats(&self.shape)];
                Ok(ConvTransposeFilters::pack(&self.shape, weight, to))
            }
            (None, None) => Err(ExecError::misfit("the weight is missing")),
        }
    }
}
