//! Picks parts of a tensor by indices, which are checked as they are used.

use std::ops::Range;

use insula_core::{DType, Result};
use insula_kernels::gather::{ElementsAlong, Gather, SlicesAt};
use insula_kernels::{IndexError, Indices};

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::indices;
use crate::error::ExecError;

#[derive(Debug)]
enum Kernel {
    Slices(Gather),
    Elements(ElementsAlong),
    Vectors(SlicesAt),
}

#[derive(Debug)]
struct GatherStep {
    kernel: Kernel,
    element_bytes: usize,
    indices: DType,
    tiles: Tiles,
}

pub(super) fn slices(lowering: &Lowering<'_>, axis: usize) -> Result<Box<dyn Step>> {
    let dims = lowering.input(0)?.shape.dims();
    let &size = dims.get(axis).ok_or_else(|| broken(format!("it has no axis {axis}")))?;
    let (outer, inner) = (dims[..axis].iter().product(), dims[axis + 1..].iter().product());
    let rows = outer * lowering.input(1)?.shape.elements();
    step(lowering, Kernel::Slices(Gather { outer, axis: size, inner }), rows, inner)
}

pub(super) fn elements(lowering: &Lowering<'_>, axis: usize) -> Result<Box<dyn Step>> {
    let along = elements_along(lowering, axis)?;
    let rows = along.elements();
    step(lowering, Kernel::Elements(along), rows, 4)
}

pub(super) fn vectors(lowering: &Lowering<'_>, batch_dims: usize) -> Result<Box<dyn Step>> {
    let (at, rows) = slices_at(lowering, batch_dims)?;
    let work = at.slice_elements();
    step(lowering, Kernel::Vectors(at), rows, work)
}

/// The elements that operand 1's indices mean in operand 0.
pub(super) fn elements_along(lowering: &Lowering<'_>, axis: usize) -> Result<ElementsAlong> {
    let (data, indices) = (lowering.input(0)?.shape.dims(), lowering.input(1)?.shape.dims());
    ElementsAlong::new(data, indices, axis)
        .ok_or_else(|| broken(format!("indices {indices:?} along axis {axis} do not fit into {data:?}")))
}

/// The slices that operand 1's vectors mean in operand 0, and how many vectors there are.
pub(super) fn slices_at(lowering: &Lowering<'_>, batch_dims: usize) -> Result<(SlicesAt, usize)> {
    let (data, indices) = (lowering.input(0)?.shape.dims(), lowering.input(1)?.shape.dims());
    let depth = indices.last().copied().filter(|depth| batch_dims + depth <= data.len());
    let (Some(depth), Some(outer)) = (depth, indices.len().checked_sub(1)) else {
        return Err(broken(format!("index vectors {indices:?} do not fit into {data:?}")));
    };
    let (axes, slice) = data[batch_dims..].split_at(depth);
    let vectors = indices.get(batch_dims..outer).map_or(1, |dims| dims.iter().product());
    Ok((SlicesAt::new(vectors, axes, slice.iter().product()), indices[..outer].iter().product()))
}

fn step(lowering: &Lowering<'_>, kernel: Kernel, rows: usize, row_work: usize) -> Result<Box<dyn Step>> {
    let (element_bytes, indices) = (lowering.element_bytes(0)?, lowering.input(1)?.dtype);
    Ok(Box::new(GatherStep { kernel, element_bytes, indices, tiles: Tiles::new(rows, row_work + 4, 1) }))
}

impl GatherStep {
    fn rows(
        &self,
        rows: Range<usize>,
        input: &[u8],
        indices: Indices<'_>,
        output: &mut [u8],
    ) -> Result<(), IndexError> {
        match &self.kernel {
            Kernel::Slices(gather) => gather.run(self.element_bytes, rows, input, indices, output),
            Kernel::Elements(along) => along.gather(self.element_bytes, rows, input, indices, output),
            Kernel::Vectors(at) => at.gather(self.element_bytes, rows, input, indices, output),
        }
    }
}

impl Step for GatherStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let indices = indices(self.indices, tensors.input(1)?)?;
        self.tiles.each(stop, |rows| Ok(self.rows(rows, input, indices, tensors.output)?))
    }
}
