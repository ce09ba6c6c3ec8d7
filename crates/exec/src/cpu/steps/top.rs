//! The largest or smallest elements along an axis, or their positions.

use insula_core::{DType, Result};
use insula_kernels::Strip;
use insula_kernels::top::{Ordered, Top};
use insula_model::op::movement;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::{by_number, typed, typed_mut};
use crate::error::ExecError;

/// Operations that an element of the axis is worth: it is compared a few times.
const ELEMENT_WORK: usize = 32;

#[derive(Debug)]
struct TopStep {
    top: Top,
    dtype: DType,
    positions: bool,
    tiles: Tiles,
}

pub(super) fn lower(lowering: &Lowering<'_>, top: &movement::Top) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let dims = input.shape.dims();
    let &axis =
        dims.get(top.axis).filter(|size| top.count <= **size && u32::try_from(**size).is_ok()).ok_or_else(|| {
            broken(format!("the first {} along axis {} of {dims:?} cannot be found", top.count, top.axis))
        })?;
    let inner: usize = dims[top.axis + 1..].iter().product();
    let columns = dims[..top.axis].iter().product::<usize>() * inner;
    let kernel = Top { strip: Strip { axis, inner }, count: top.count, largest: top.largest };
    let tiles = Tiles::new(columns, axis * ELEMENT_WORK, 1);
    Ok(Box::new(TopStep { top: kernel, dtype: input.dtype, positions: top.positions, tiles }))
}

impl TopStep {
    fn typed<T: Ordered>(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = typed::<T>(tensors.input(0)?)?;
        let StepTensors { output, scratch, .. } = tensors;
        let scratch = typed_mut::<u32>(&mut scratch[..self.scratch_bytes()])?;
        if self.positions {
            let output = typed_mut::<i64>(output)?;
            self.tiles.each(stop, |columns| {
                self.top.run(columns, input, scratch, |place, position, _| output[place] = position as i64);
                Ok(())
            })
        } else {
            let output = typed_mut::<T>(output)?;
            self.tiles.each(stop, |columns| {
                self.top.run(columns, input, scratch, |place, _, value| output[place] = value);
                Ok(())
            })
        }
    }
}

impl Step for TopStep {
    fn scratch_bytes(&self) -> usize {
        self.top.scratch() * size_of::<u32>()
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        by_number!(
            self.dtype,
            T => self.typed::<T>(tensors, stop),
            Err(ExecError::misfit("BYTES cannot be put in order"))
        )
    }
}
