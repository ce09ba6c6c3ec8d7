//! Convolutions of INT32 and FP64, plainly as these types compute.

use insula_core::{DType, Result};
use insula_kernels::conv::ConvShape;
use insula_kernels::product::{Multiplicand, arrange_filters, convolve};

use super::conv::conv_shape;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::{typed, typed_mut};
use crate::error::ExecError;

#[derive(Debug)]
struct ExactConvStep {
    dtype: DType,
    shape: ConvShape,
    /// Bytes of the weight.
    weight_bytes: usize,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, conv: &insula_model::Conv) -> Result<Box<dyn Step>> {
    let shape = conv_shape(lowering.plan, lowering.step, conv)?;
    let (input, weight) = (lowering.input(0)?, lowering.input(1)?);
    let weight_bytes = weight.shape.bytes(weight.dtype)?.ok_or_else(|| broken("its elements vary in size"))?;
    let row_work = shape.window.taps() * shape.channels / shape.groups.max(1) * shape.filters * 4;
    let tiles = Tiles::new(shape.window.output_pixels(input.shape.dims()[0]), row_work, 1);
    Ok(Box::new(ExactConvStep { dtype: input.dtype, shape, weight_bytes, tiles }))
}

impl Step for ExactConvStep {
    fn scratch_bytes(&self) -> usize {
        self.weight_bytes
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        match self.dtype {
            DType::Int32 => self.compute::<i32>(tensors, stop),
            DType::Fp64 => self.compute::<f64>(tensors, stop),
            other => Err(ExecError::misfit(format!("a convolution was given {other}"))),
        }
    }
}

impl ExactConvStep {
    fn compute<T: Multiplicand>(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (input, weight) = (typed::<T>(tensors.input(0)?)?, typed::<T>(tensors.input(1)?)?);
        let StepTensors { output, scratch, .. } = tensors;
        let filters = typed_mut::<T>(&mut scratch[..self.weight_bytes])?;
        arrange_filters(&self.shape, weight, filters);
        let output = typed_mut::<T>(output)?;
        self.tiles.each(stop, |rows| {
            convolve(&self.shape, rows, input, filters, output);
            Ok(())
        })
    }
}
