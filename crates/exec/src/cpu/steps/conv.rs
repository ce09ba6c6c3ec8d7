//! Convolution with what is fused to it.

use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::conv::{Conv, ConvFilters, ConvShape, ConvWeights, conv_filter_floats, conv_scratch_bytes};
use insula_kernels::{Activation, Floats, Isa};
use insula_model::{LogicalPlan, Source};

use super::window::kernel_window;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors};
use crate::cpu::tensor::{floats_mut, typed_mut};
use crate::error::ExecError;

/// Output pixels that the kernel likes to have at once.
const GRANULES: Granules = Granules { good: 96, least: 6 };

#[derive(Debug)]
struct ConvStep {
    isa: Isa,
    dtype: DType,
    shape: ConvShape,
    /// `None`: the weight is an operand, laid out at each run.
    weights: Option<Arc<ConvWeights>>,
    bias: Option<Arc<[f32]>>,
    activation: Activation,
    tiles: SharedTiles,
}

/// The kernel's sizes for a convolution of `plan`.
pub(in crate::cpu) fn conv_shape(
    plan: &LogicalPlan,
    step: &insula_model::Step,
    conv: &insula_model::Conv,
) -> Result<ConvShape> {
    let (Some(image), Some(output)) = (step.inputs.first(), plan.buffers.get(step.output.index())) else {
        return Err(broken("an operand is missing"));
    };
    let (input, output) = (image.shape.dims(), output.shape.dims());
    let window = kernel_window(&conv.window, input, output)
        .ok_or_else(|| broken("its images have not three to five dimensions"))?;
    let (channels, filters) = (input[input.len() - 1], output[output.len() - 1]);
    Ok(ConvShape { window, channels, filters, groups: conv.groups })
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, conv: &insula_model::Conv) -> Result<Box<dyn Step>> {
    let shape = conv_shape(lowering.plan, lowering.step, conv)?;
    let weights = match lowering.input(1)?.source {
        Source::Constant(id) => Some(lowering.weights.filters(id, conv.groups)?),
        Source::Input(_) | Source::Buffer(_) => None,
    };
    let images = lowering.input(0)?.shape.dims()[0];
    let rows = shape.window.output_pixels(images);
    let row_work = shape.window.taps() * shape.channels / shape.groups.max(1) * shape.filters;
    Ok(Box::new(ConvStep {
        isa: lowering.isa,
        dtype: lowering.output()?.dtype,
        shape,
        weights,
        bias: lowering.bias()?,
        activation: lowering.activation(),
        tiles: SharedTiles::new(lowering.threads, rows, row_work, GRANULES),
    }))
}

impl Step for ConvStep {
    fn scratch_bytes(&self) -> usize {
        let tiles = self.tiles.scratch_bytes(conv_scratch_bytes(&self.shape, self.tiles.tile()));
        self.filter_bytes().saturating_add(tiles)
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let weight = if self.weights.is_none() { Some(tensors.floats(1, self.dtype)?) } else { None };
        let residual = tensors.residual(if weight.is_some() { 2 } else { 1 }, self.dtype)?;
        let StepTensors { output, scratch, threads, .. } = tensors;
        let (filters, scratch) = scratch.split_at_mut(self.filter_bytes());
        let (weights, bias) = (self.filters(weight, filters)?, self.bias.as_deref());
        let conv = Conv { isa: self.isa, shape: self.shape, weights, bias, activation: self.activation };
        self.tiles.each(threads, stop, output, scratch, |rows, output, scratch| {
            let elements = rows.start * self.shape.filters..rows.end * self.shape.filters;
            let residual = residual.map(|residual| residual.range(elements));
            conv.run(rows, input, residual, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}

impl ConvStep {
    /// Bytes of a weight that is laid out at each run, rounded up to cache lines.
    fn filter_bytes(&self) -> usize {
        match self.weights {
            Some(_) => 0,
            None => conv_filter_floats(&self.shape).saturating_mul(size_of::<f32>()).next_multiple_of(64),
        }
    }

    fn filters<'a>(&'a self, weight: Option<Floats<'_>>, to: &'a mut [u8]) -> Result<ConvFilters<'a>, ExecError> {
        match (&self.weights, weight) {
            (Some(weights), _) => Ok(weights.filters()),
            (None, Some(weight)) => {
                let to = &mut typed_mut::<f32>(to)?[..conv_filter_floats(&self.shape)];
                Ok(ConvFilters::pack(&self.shape, weight, to))
            }
            (None, None) => Err(ExecError::misfit("the weight is missing")),
        }
    }
}
