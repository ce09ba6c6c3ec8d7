//! Slices, paddings, broadcasts and resizing to the nearest: every axis shows positions of the input's, worked out here.

use std::iter::repeat_n;

use insula_core::Result;
use insula_kernels::remap::{AxisMap, Remap};
use insula_model::op::movement::{AxisSlice, Pad, PadMode};

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// One element of zeros, of any type.
const ZERO: [u8; 8] = [0; 8];

#[derive(Debug)]
struct RemapStep {
    element_bytes: usize,
    remap: Remap,
    /// Whether the second operand is the fill, instead of zeros.
    filled: bool,
    tiles: Tiles,
}

pub(super) fn slice(lowering: &Lowering<'_>, slices: &[AxisSlice]) -> Result<Box<dyn Step>> {
    let dims = lowering.input(0)?.shape.dims();
    let mut maps: Vec<AxisMap> = dims.iter().map(|size| AxisMap::whole(*size)).collect();
    for slice in slices {
        let position = |k: usize| slice.start.wrapping_add_signed((k as i64).wrapping_mul(slice.step) as isize);
        let map = maps.get_mut(slice.axis).ok_or_else(|| broken(format!("it has no axis {}", slice.axis)))?;
        *map = AxisMap::new((0..slice.size).map(|k| Some(position(k))));
    }
    step(lowering, dims, maps)
}

pub(super) fn pad(lowering: &Lowering<'_>, pad: &Pad) -> Result<Box<dyn Step>> {
    let dims = lowering.input(0)?.shape.dims();
    let map = |(axis, &size): (usize, &usize)| {
        let (before, after) = (pad.before[axis] as i64, pad.after[axis] as i64);
        AxisMap::new((-before..size as i64 + after).map(|at| shown(pad.mode, at, size)))
    };
    step(lowering, dims, dims.iter().enumerate().map(map).collect())
}

/// The position that padding, or the tensor itself, shows at `at` of an axis of `size`.
fn shown(mode: PadMode, at: i64, size: usize) -> Option<usize> {
    let length = size as i64;
    let position = match mode {
        PadMode::Constant => at,
        PadMode::Edge => at.clamp(0, length - 1),
        PadMode::Wrap => at.rem_euclid(length.max(1)),
        PadMode::Reflect => {
            let around = at.rem_euclid((2 * (length - 1)).max(1));
            around.min(2 * (length - 1) - around)
        }
    };
    usize::try_from(position).ok().filter(|position| *position < size)
}

pub(super) fn expand(lowering: &Lowering<'_>) -> Result<Box<dyn Step>> {
    let (from, to) = (lowering.input(0)?.shape.dims(), lowering.output()?.shape.dims());
    let missing = to.len().checked_sub(from.len()).ok_or_else(|| broken("it would lose dimensions"))?;
    let from: Vec<usize> = repeat_n(1, missing).chain(from.iter().copied()).collect();
    let map = |(from, to): (&usize, &usize)| match from == to {
        true => AxisMap::whole(*to),
        false => AxisMap::new(repeat_n(Some(0), *to)),
    };
    let maps = from.iter().zip(to).map(map).collect();
    step(lowering, &from, maps)
}

/// `axis` shows `positions` of the input's; zeros where there is none.
pub(super) fn along(lowering: &Lowering<'_>, axis: usize, positions: Vec<Option<usize>>) -> Result<Box<dyn Step>> {
    let dims = lowering.input(0)?.shape.dims();
    let mut maps: Vec<AxisMap> = dims.iter().map(|size| AxisMap::whole(*size)).collect();
    *maps.get_mut(axis).ok_or_else(|| broken(format!("it has no axis {axis}")))? = AxisMap::new(positions);
    step(lowering, dims, maps)
}

fn step(lowering: &Lowering<'_>, from: &[usize], maps: Vec<AxisMap>) -> Result<Box<dyn Step>> {
    let sizes: Vec<usize> = maps.iter().map(AxisMap::size).collect();
    if sizes != lowering.output()?.shape.dims() {
        return Err(broken(format!("it makes {sizes:?} of {from:?}, not its output")));
    }
    let remap = Remap::new(from, maps).ok_or_else(|| broken(format!("it reaches beyond {from:?}")))?;
    let tiles = Tiles::new(remap.lines(), remap.line_elements(), 1);
    let filled = lowering.step.inputs.len() > 1;
    Ok(Box::new(RemapStep { element_bytes: lowering.element_bytes(0)?, remap, filled, tiles }))
}

impl Step for RemapStep {
    fn memory_bytes(&self) -> usize {
        size_of_val(self) + self.remap.memory_bytes()
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let fill = if self.filled { tensors.input(1)? } else { &ZERO[..self.element_bytes] };
        self.tiles.each(stop, |lines| {
            self.remap.run(self.element_bytes, lines, input, fill, tensors.output);
            Ok(())
        })
    }
}
