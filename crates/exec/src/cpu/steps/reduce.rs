//! Reductions over some axes, and the kernels' names for them.

use insula_core::Result;
use insula_kernels::reduce::{Reduce, Reduction};
use insula_kernels::{Isa, Number};
use insula_model::op;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 4;

#[derive(Debug)]
struct ReduceStep {
    isa: Isa,
    number: Number,
    reduce: Reduce,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: &op::Reduce) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let reduce = Reduce::new(kernel(op.reduction), input.shape.dims(), &op.axes)
        .ok_or_else(|| broken(format!("{} has no axes {:?}", input.shape, op.axes)))?;
    let row_work = input.shape.elements() / reduce.rows().max(1) * ELEMENT_WORK;
    let (number, tiles) = (lowering.number(input.dtype)?, Tiles::new(reduce.rows(), row_work, 1));
    Ok(Box::new(ReduceStep { isa: lowering.isa, number, reduce, tiles }))
}

fn kernel(reduction: op::Reduction) -> Reduction {
    match reduction {
        op::Reduction::Sum => Reduction::Sum,
        op::Reduction::Mean => Reduction::Mean,
        op::Reduction::Max => Reduction::Max,
        op::Reduction::Min => Reduction::Min,
        op::Reduction::Prod => Reduction::Product,
        op::Reduction::L1 => Reduction::L1,
        op::Reduction::L2 => Reduction::L2,
        op::Reduction::LogSum => Reduction::LogSum,
        op::Reduction::LogSumExp => Reduction::LogSumExp,
        op::Reduction::SumSquare => Reduction::SumSquare,
    }
}

impl Step for ReduceStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        self.tiles.each(stop, |rows| {
            self.reduce.run(self.isa, self.number, rows, input, tensors.output);
            Ok(())
        })
    }
}
