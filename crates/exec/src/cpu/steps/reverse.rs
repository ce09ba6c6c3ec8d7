//! Sequences whose first entries are turned around.

use insula_core::{DType, Result};
use insula_kernels::reverse::ReverseSequence;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::indices;
use crate::error::ExecError;

#[derive(Debug)]
struct ReverseStep {
    reverse: ReverseSequence,
    lengths: DType,
    tiles: Tiles,
}

pub(super) fn lower(lowering: &Lowering<'_>, time_first: bool) -> Result<Box<dyn Step>> {
    let &[first, second, ref inner @ ..] = lowering.input(0)?.shape.dims() else {
        return Err(broken("its input holds no sequences"));
    };
    let inner_bytes = inner.iter().product::<usize>() * lowering.element_bytes(0)?;
    let reverse = ReverseSequence { axes: [first, second], between: 1, time_first, inner_bytes };
    let tiles = Tiles::new(first * second, inner_bytes, 1);
    Ok(Box::new(ReverseStep { reverse, lengths: lowering.input(1)?.dtype, tiles }))
}

impl Step for ReverseStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let lengths = indices(self.lengths, tensors.input(1)?)?;
        self.tiles.each(stop, |entries| Ok(self.reverse.run(entries, input, lengths, tensors.output)?))
    }
}
