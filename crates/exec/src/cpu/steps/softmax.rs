//! Softmax and its logarithm.

use insula_core::{DType, Result};
use insula_kernels::softmax::{softmax, softmax_scratch_bytes};
use insula_kernels::{Isa, Strip};

use super::slices_along;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
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
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, axis: usize, logarithm: bool) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let (slices, strip) =
        slices_along(input.shape.dims(), axis).ok_or_else(|| broken(format!("it has no axis {axis}")))?;
    let tiles = Tiles::new(slices, strip.axis * strip.inner * ELEMENT_WORK, 1);
    Ok(Box::new(SoftmaxStep { isa: lowering.isa, dtype: input.dtype, logarithm, strip, tiles }))
}

impl Step for SoftmaxStep {
    fn scratch_bytes(&self) -> usize {
        softmax_scratch_bytes(self.strip)
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let StepTensors { output, scratch, .. } = tensors;
        self.tiles.each(stop, |slices| {
            softmax(self.isa, self.logarithm, self.strip, slices, input, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}
