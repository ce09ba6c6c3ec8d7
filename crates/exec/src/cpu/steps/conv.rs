//! Convolution with what is fused to it.

use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::conv::{Conv, ConvShape, ConvWeights, conv_scratch_bytes};
use insula_kernels::{Activation, Isa};
use insula_model::{LogicalPlan, Source};

use super::window::kernel_window;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::floats_mut;
use crate::error::ExecError;

/// Output pixels that the kernel likes to have at once.
const GRANULE: usize = 96;

#[derive(Debug)]
struct ConvStep {
    isa: Isa,
    dtype: DType,
    shape: ConvShape,
    weights: Arc<ConvWeights>,
    bias: Option<Arc<[f32]>>,
    activation: Activation,
    tiles: Tiles,
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
    let window =
        kernel_window(&conv.window, input, output).ok_or_else(|| broken("its images have not four dimensions"))?;
    Ok(ConvShape { window, channels: input[3], filters: output[3], groups: conv.groups })
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, conv: &insula_model::Conv) -> Result<Box<dyn Step>> {
    let shape = conv_shape(lowering.plan, lowering.step, conv)?;
    let Source::Constant(id) = lowering.input(1)?.source else { return Err(broken("its weight is not constant")) };
    let weights = lowering.weights.filters(id, conv.groups)?;
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
        tiles: Tiles::new(rows, row_work, GRANULE),
    }))
}

impl Step for ConvStep {
    fn scratch_bytes(&self) -> usize {
        conv_scratch_bytes(&self.shape, self.tiles.tile)
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (input, residual) = (tensors.floats(0, self.dtype)?, tensors.residual(1, self.dtype)?);
        let (weights, bias) = (self.weights.filters(), self.bias.as_deref());
        let conv = Conv { isa: self.isa, shape: self.shape, weights, bias, activation: self.activation };
        let StepTensors { output, scratch, .. } = tensors;
        self.tiles.each(stop, |rows| {
            conv.run(rows, input, residual, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}
