//! Softmax and its logarithm.

use insula_core::{DType, Result};
use insula_kernels::softmax::{softmax, softmax_scratch_bytes};
use insula_kernels::{Isa, Strip};

use super::slices_along;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors};
use crate::cpu::tensor::floats_mut;
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 32;

#[derive(Debug)]
struct SoftmaxStep {
    isa: Isa,
    dtype: DType,
    logarithm: bool,
    strip: Strip,
    tiles: SharedTiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, axis: usize, logarithm: bool) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let (slices, strip) =
        slices_along(input.shape.dims(), axis).ok_or_else(|| broken(format!("it has no axis {axis}")))?;
    let slice_work = strip.axis * strip.inner * ELEMENT_WORK;
    let tiles = SharedTiles::new(lowering.threads, slices, slice_work, Granules::ANY);
    Ok(Box::new(SoftmaxStep { isa: lowering.isa, dtype: input.dtype, logarithm, strip, tiles }))
}

impl Step for SoftmaxStep {
    fn scratch_bytes(&self) -> usize {
        self.tiles.scratch_bytes(softmax_scratch_bytes(self.strip))
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let StepTensors { output, scratch, threads, .. } = tensors;
        let slice = self.strip.axis * self.strip.inner;
        self.tiles.each(threads, stop, output, scratch, |slices, output, scratch| {
            let (input, output) =
                (input.range(slices.start * slice..slices.end * slice), floats_mut(self.dtype, output)?);
            softmax(self.isa, self.logarithm, self.strip, 0..slices.len(), input, output, scratch);
            Ok(())
        })
    }
}
