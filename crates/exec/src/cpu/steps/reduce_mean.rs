//! The mean over some axes.

use insula_core::{DType, Result};
use insula_kernels::Isa;
use insula_kernels::reduce::Mean;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 4;

#[derive(Debug)]
struct MeanStep {
    isa: Isa,
    dtype: DType,
    mean: Mean,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, axes: &[usize]) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let mean = Mean::new(input.shape.dims(), axes).ok_or_else(|| broken(format!("it has no axes {axes:?}")))?;
    let row_work = input.shape.elements() / mean.rows().max(1) * ELEMENT_WORK;
    Ok(Box::new(MeanStep { isa: lowering.isa, dtype: input.dtype, mean, tiles: Tiles::new(mean.rows(), row_work, 1) }))
}

impl Step for MeanStep {
    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        self.tiles.each(stop, |rows| {
            self.mean.run(self.isa, rows, input, tensors.output(self.dtype)?);
            Ok(())
        })
    }
}
