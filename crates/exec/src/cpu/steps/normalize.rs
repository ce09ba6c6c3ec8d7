//! Layer and root-mean-square normalisation along the last axis.

use insula_core::{DType, Result};
use insula_kernels::Isa;
use insula_kernels::normalise::Normalise;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::floats_mut;
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 8;

#[derive(Debug)]
struct NormalizeStep {
    isa: Isa,
    dtype: DType,
    columns: usize,
    centred: bool,
    epsilon: f32,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, centred: bool, epsilon: f32) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let columns = *input.shape.dims().last().ok_or_else(|| broken("a scalar has no axis to normalise along"))?;
    let rows = input.shape.elements() / columns.max(1);
    let tiles = Tiles::new(rows, columns * ELEMENT_WORK, 1);
    Ok(Box::new(NormalizeStep { isa: lowering.isa, dtype: input.dtype, columns, centred, epsilon, tiles }))
}

impl Step for NormalizeStep {
    fn scratch_bytes(&self) -> usize {
        Normalise::scratch_bytes(self.columns)
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let (scale, bias) = (tensors.residual(1, self.dtype)?, tensors.residual(2, self.dtype)?);
        let NormalizeStep { isa, columns, centred, epsilon, .. } = *self;
        let normalise = Normalise { isa, columns, centred, epsilon, scale, bias };
        let StepTensors { output, scratch, .. } = tensors;
        self.tiles.each(stop, |rows| {
            normalise.run(rows, input, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}
