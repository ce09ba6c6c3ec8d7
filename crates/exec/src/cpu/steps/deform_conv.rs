//! Deformable convolution. Its weight is laid out at each run: sampling costs far more.

use insula_core::{DType, Result};
use insula_kernels::Isa;
use insula_kernels::conv::{ConvShape, DeformableConv, Deformation};
use insula_kernels::gemm::gemm_scratch_bytes;
use insula_model::DeformConv;

use super::window::kernel_window;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::{floats_mut, typed_mut};
use crate::error::ExecError;

/// Output pixels that the kernel likes to have at once.
const GRANULE: usize = 96;

/// Operations that a sample of one channel is worth.
const SAMPLE_WORK: usize = 16;

#[derive(Debug)]
struct DeformConvStep {
    isa: Isa,
    dtype: DType,
    shape: ConvShape,
    offset_groups: usize,
    masked: bool,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, conv: &DeformConv) -> Result<Box<dyn Step>> {
    let (input, output) = (lowering.input(0)?.shape.dims(), lowering.output()?);
    let window = kernel_window(&conv.window, input, output.shape.dims())
        .ok_or_else(|| broken("its images have not four dimensions"))?;
    let (channels, filters) = (input[input.len() - 1], output.shape.dims()[input.len() - 1]);
    let shape = ConvShape { window, channels, filters, groups: conv.groups };
    let row_work = window.taps() * channels * (filters / conv.groups.max(1) + SAMPLE_WORK);
    Ok(Box::new(DeformConvStep {
        isa: lowering.isa,
        dtype: output.dtype,
        shape,
        offset_groups: conv.offset_groups,
        masked: lowering.step.inputs.len() > 3,
        tiles: Tiles::new(window.output_pixels(input[0]), row_work, GRANULE),
    }))
}

impl DeformConvStep {
    fn filter_bytes(&self) -> usize {
        DeformableConv::filter_floats(&self.shape).saturating_mul(size_of::<f32>()).next_multiple_of(64)
    }
}

impl Step for DeformConvStep {
    fn scratch_bytes(&self) -> usize {
        let depth = self.shape.window.taps() * self.shape.channels;
        self.filter_bytes().saturating_add(gemm_scratch_bytes(self.tiles.tile, depth, self.shape.filters))
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (input, weight) = (tensors.floats(0, self.dtype)?, tensors.floats(1, self.dtype)?);
        let offsets = tensors.floats(2, self.dtype)?;
        let mask = if self.masked { Some(tensors.floats(3, self.dtype)?) } else { None };
        let StepTensors { output, scratch, .. } = tensors;
        let (filters, scratch) = scratch.split_at_mut(self.filter_bytes());
        let filters = &mut typed_mut::<f32>(filters)?[..DeformableConv::filter_floats(&self.shape)];
        DeformableConv::arrange(&self.shape, weight, filters);
        let (isa, shape, offset_groups) = (self.isa, self.shape, self.offset_groups);
        let conv = DeformableConv { isa, shape, offset_groups, filters };
        self.tiles.each(stop, |rows| {
            let deformation = Deformation { offsets, mask };
            conv.run(rows, input, deformation, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}
