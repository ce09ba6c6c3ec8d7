//! Conversion between number types.

use insula_core::{DType, Result};
use insula_kernels::convert::cast;
use insula_kernels::{Isa, Number};

use crate::batch::StopPoint;
use crate::cpu::lower::Lowering;
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 8;

#[derive(Debug)]
struct CastStep {
    isa: Isa,
    from: Number,
    to: Number,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, to: DType) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let (from, to) = (lowering.number(input.dtype)?, lowering.number(to)?);
    Ok(Box::new(CastStep { isa: lowering.isa, from, to, tiles: Tiles::new(input.shape.elements(), ELEMENT_WORK, 1) }))
}

impl Step for CastStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let (from, to) = (self.from.size(), self.to.size());
        self.tiles.each(stop, |elements| {
            let input = &input[elements.start * from..elements.end * from];
            cast(self.isa, self.from, input, self.to, &mut tensors.output[elements.start * to..elements.end * to]);
            Ok(())
        })
    }
}
