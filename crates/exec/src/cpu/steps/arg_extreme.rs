//! The position of the largest or smallest element.

use insula_core::Result;
use insula_kernels::arg::{Extreme, extreme_positions};
use insula_kernels::{Number, Strip};
use insula_model::op::ArgExtreme;

use super::slices_along;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::typed_mut;
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 8;

#[derive(Debug)]
struct ArgExtremeStep {
    extreme: Extreme,
    number: Number,
    strip: Strip,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: ArgExtreme) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let (slices, strip) =
        slices_along(input.shape.dims(), op.axis).ok_or_else(|| broken(format!("it has no axis {}", op.axis)))?;
    let tiles = Tiles::new(slices, strip.axis * strip.inner * ELEMENT_WORK, 1);
    let extreme = Extreme { largest: op.largest, last: op.select_last_index };
    Ok(Box::new(ArgExtremeStep { extreme, number: lowering.number(input.dtype)?, strip, tiles }))
}

impl Step for ArgExtremeStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let out = typed_mut::<i64>(tensors.output)?;
        self.tiles.each(stop, |slices| {
            extreme_positions(self.extreme, self.number, self.strip, slices, input, out);
            Ok(())
        })
    }
}
