//! The mean over some axes.

use insula_core::Result;
use insula_kernels::reduce::{Reduce, Reduction};
use insula_kernels::{Isa, Number};

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 4;

#[derive(Debug)]
struct MeanStep {
    isa: Isa,
    number: Number,
    reduce: Reduce,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, axes: &[usize]) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let reduce = Reduce::new(Reduction::Mean, input.shape.dims(), axes)
        .ok_or_else(|| broken(format!("it has no axes {axes:?}")))?;
    let row_work = input.shape.elements() / reduce.rows().max(1) * ELEMENT_WORK;
    let (number, tiles) = (lowering.number(input.dtype)?, Tiles::new(reduce.rows(), row_work, 1));
    Ok(Box::new(MeanStep { isa: lowering.isa, number, reduce, tiles }))
}

impl Step for MeanStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        self.tiles.each(stop, |rows| {
            self.reduce.run(self.isa, self.number, rows, input, tensors.output);
            Ok(())
        })
    }
}
