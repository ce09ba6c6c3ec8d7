//! Layer and root-mean-square normalisation along the last axis.

use insula_core::{DType, Result};
use insula_kernels::Isa;
use insula_kernels::normalise::Normalise;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors};
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
    tiles: SharedTiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, centred: bool, epsilon: f32) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let columns = *input.shape.dims().last().ok_or_else(|| broken("a scalar has no axis to normalise along"))?;
    let rows = input.shape.elements() / columns.max(1);
    let tiles = SharedTiles::new(lowering.threads, rows, columns * ELEMENT_WORK, Granules::ANY);
    Ok(Box::new(NormalizeStep { isa: lowering.isa, dtype: input.dtype, columns, centred, epsilon, tiles }))
}

impl Step for NormalizeStep {
    fn scratch_bytes(&self) -> usize {
        self.tiles.scratch_bytes(Normalise::scratch_bytes(self.columns))
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let (scale, bias) = (tensors.residual(1, self.dtype)?, tensors.residual(2, self.dtype)?);
        let NormalizeStep { isa, columns, centred, epsilon, .. } = *self;
        let normalise = Normalise { isa, columns, centred, epsilon, scale, bias };
        let StepTensors { output, scratch, threads, .. } = tensors;
        self.tiles.each(threads, stop, output, scratch, |rows, output, scratch| {
            let input = input.range(rows.start * columns..rows.end * columns);
            normalise.run(0..rows.len(), input, floats_mut(self.dtype, output)?, scratch);
            Ok(())
        })
    }
}
