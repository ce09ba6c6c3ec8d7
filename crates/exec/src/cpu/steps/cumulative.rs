//! Running sums and products.

use insula_core::Result;
use insula_kernels::cumulative::{Cumulative, cumulate};
use insula_kernels::{Number, Strip};
use insula_model::op;

use super::slices_along;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 8;

#[derive(Debug)]
struct CumulativeStep {
    cumulative: Cumulative,
    number: Number,
    strip: Strip,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: op::Cumulative) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let (slices, strip) =
        slices_along(input.shape.dims(), op.axis).ok_or_else(|| broken(format!("it has no axis {}", op.axis)))?;
    let tiles = Tiles::new(slices, strip.axis * strip.inner * ELEMENT_WORK, 1);
    let op::Cumulative { product, exclusive, reverse, .. } = op;
    let cumulative = Cumulative { product, exclusive, reverse };
    Ok(Box::new(CumulativeStep { cumulative, number: lowering.number(input.dtype)?, strip, tiles }))
}

impl Step for CumulativeStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        self.tiles.each(stop, |slices| {
            cumulate(self.cumulative, self.number, self.strip, slices, input, tensors.output);
            Ok(())
        })
    }
}
