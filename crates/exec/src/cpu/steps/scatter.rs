//! Writes updates into a copy of a tensor at places that indices name, which are checked as they are used.

use insula_core::{DType, Result};
use insula_kernels::Indices;
use insula_kernels::gather::{ElementsAlong, SlicesAt};
use insula_kernels::scatter::{self, CacheUpdate};
use insula_model::op::movement::Combine;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors};
use crate::cpu::steps::gather::{elements_along, slices_at};
use crate::cpu::tensor::{by_number, indices, typed, typed_mut};
use crate::error::ExecError;

#[derive(Debug)]
enum Places {
    Elements(ElementsAlong),
    Vectors { at: SlicesAt, count: usize },
}

#[derive(Debug)]
struct ScatterStep {
    places: Places,
    dtype: DType,
    element_bytes: usize,
    indices: DType,
    combine: Option<scatter::Combine>,
}

pub(super) fn elements(lowering: &Lowering<'_>, axis: usize, combine: Option<Combine>) -> Result<Box<dyn Step>> {
    step(lowering, Places::Elements(elements_along(lowering, axis)?), combine)
}

pub(super) fn vectors(lowering: &Lowering<'_>, combine: Option<Combine>) -> Result<Box<dyn Step>> {
    let (at, count) = slices_at(lowering, 0)?;
    step(lowering, Places::Vectors { at, count }, combine)
}

fn step(lowering: &Lowering<'_>, places: Places, combine: Option<Combine>) -> Result<Box<dyn Step>> {
    let combine = combine.map(|combine| match combine {
        Combine::Add => scatter::Combine::Add,
        Combine::Multiply => scatter::Combine::Multiply,
        Combine::Max => scatter::Combine::Max,
        Combine::Min => scatter::Combine::Min,
    });
    let (dtype, indices) = (lowering.input(0)?.dtype, lowering.input(1)?.dtype);
    Ok(Box::new(ScatterStep { places, dtype, element_bytes: lowering.element_bytes(0)?, indices, combine }))
}

impl ScatterStep {
    fn replace(&self, indices: Indices<'_>, updates: &[u8], output: &mut [u8]) -> Result<(), ExecError> {
        match &self.places {
            Places::Elements(along) => along.scatter(self.element_bytes, indices, updates, output)?,
            Places::Vectors { at, count } => at.scatter(self.element_bytes, *count, indices, updates, output)?,
        }
        Ok(())
    }

    fn combine<T: scatter::Combinable>(
        &self,
        how: scatter::Combine,
        indices: Indices<'_>,
        updates: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExecError> {
        let (updates, output) = (typed::<T>(updates)?, typed_mut::<T>(output)?);
        match &self.places {
            Places::Elements(along) => along.combine(how, indices, updates, output)?,
            Places::Vectors { at, count } => at.combine(how, *count, indices, updates, output)?,
        }
        Ok(())
    }
}

impl Step for ScatterStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (data, updates) = (tensors.input(0)?, tensors.input(2)?);
        let indices = indices(self.indices, tensors.input(1)?)?;
        copy(data, tensors.output)?;
        match self.combine {
            None => self.replace(indices, updates, tensors.output),
            Some(how) => by_number!(
                self.dtype,
                T => self.combine::<T>(how, indices, updates, tensors.output),
                Err(ExecError::misfit("BYTES cannot be combined"))
            ),
        }
    }
}

#[derive(Debug)]
struct CacheStep {
    update: CacheUpdate,
    positions: Option<DType>,
}

pub(super) fn cache(lowering: &Lowering<'_>, axis: usize, circular: bool) -> Result<Box<dyn Step>> {
    let (cache, update) = (lowering.input(0)?.shape.dims(), lowering.input(1)?.shape.dims());
    if axis == 0 || axis >= cache.len() || cache.len() != update.len() {
        return Err(broken(format!("it has no axis {axis} of entries")));
    }
    let update = CacheUpdate {
        outer: cache[1..axis].iter().product(),
        length: cache[axis],
        update_length: update[axis],
        entry_bytes: cache[axis + 1..].iter().product::<usize>() * lowering.element_bytes(0)?,
        circular,
    };
    let positions = lowering.step.inputs.get(2).map(|operand| operand.dtype);
    Ok(Box::new(CacheStep { update, positions }))
}

impl Step for CacheStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let positions = match self.positions {
            Some(dtype) => Some(indices(dtype, tensors.input(2)?)?),
            None => None,
        };
        let (cache, updates) = (tensors.input(0)?, tensors.input(1)?);
        copy(cache, tensors.output)?;
        Ok(self.update.run(positions, updates, tensors.output)?)
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> Result<(), ExecError> {
    if from.len() != to.len() {
        return Err(ExecError::misfit(format!("{} bytes to be copied to {}", from.len(), to.len())));
    }
    to.copy_from_slice(from);
    Ok(())
}
