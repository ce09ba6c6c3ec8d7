//! Operations that find things whose number depends on what is found. They run on constants alone, while a model is loaded:
//! first for the number, then for the things.

use bytemuck::Zeroable;
use insula_core::{DType, Result, Shape};
use insula_kernels::non_max_suppression::NonMaxSuppression;
use insula_kernels::top::Ordered;
use insula_kernels::unique::{Groups, unique as grouped};
use insula_model::op::movement::{self, Found, Unique, UniqueOutput};

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors};
use crate::cpu::tensor::{by_number, typed, typed_mut};
use crate::error::ExecError;

/// Writes `values`, which are as many as the plan foresees.
fn write(values: &[i64], output: &mut [u8]) -> Result<(), ExecError> {
    let output = typed_mut::<i64>(output)?;
    if output.len() != values.len() {
        return Err(ExecError::misfit(format!("{} values were found, {} foreseen", values.len(), output.len())));
    }
    output.copy_from_slice(values);
    Ok(())
}

fn numbers(positions: impl IntoIterator<Item = usize>) -> Vec<i64> {
    positions.into_iter().map(|position| position as i64).collect()
}

#[derive(Debug)]
struct NonZeroStep {
    dtype: DType,
    shape: Shape,
    wanted: Found,
}

pub(super) fn non_zero(lowering: &Lowering<'_>, wanted: Found) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    Ok(Box::new(NonZeroStep { dtype: input.dtype, shape: input.shape.clone(), wanted }))
}

impl Step for NonZeroStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let found = by_number!(
            self.dtype,
            T => positions::<T>(input)?,
            return Err(ExecError::misfit("BYTES are neither zero nor not"))
        );
        if self.wanted == Found::Count {
            return write(&[found.len() as i64], tensors.output);
        }
        let mut values = Vec::with_capacity(found.len() * self.shape.rank());
        for axis in 0..self.shape.rank() {
            let inner: usize = self.shape.dims()[axis + 1..].iter().product();
            values.extend(found.iter().map(|position| (position / inner % self.shape.dims()[axis]) as i64));
        }
        write(&values, tensors.output)
    }
}

fn positions<T: Ordered + Zeroable + PartialEq>(input: &[u8]) -> Result<Vec<usize>, ExecError> {
    let input = typed::<T>(input)?;
    Ok((0..input.len()).filter(|position| input[*position] != T::zeroed()).collect())
}

#[derive(Debug)]
struct UniqueStep {
    dtype: DType,
    outer: usize,
    axis: usize,
    inner: usize,
    unique: Unique,
}

pub(super) fn unique(lowering: &Lowering<'_>, unique: &Unique) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let dims = input.shape.dims();
    let (outer, size, inner) = match unique.axis {
        None => (1, input.shape.elements(), 1),
        Some(axis) => {
            let size = *dims.get(axis).ok_or_else(|| broken(format!("it has no axis {axis}")))?;
            (dims[..axis].iter().product(), size, dims[axis + 1..].iter().product())
        }
    };
    Ok(Box::new(UniqueStep { dtype: input.dtype, outer, axis: size, inner, unique: *unique }))
}

impl UniqueStep {
    fn groups<T: Ordered>(&self, input: &[u8]) -> Result<Groups, ExecError> {
        Ok(grouped(self.outer, self.axis, self.inner, typed::<T>(input)?, self.unique.ascending))
    }
}

impl Step for UniqueStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let groups = by_number!(
            self.dtype,
            T => self.groups::<T>(input)?,
            return Err(ExecError::misfit("BYTES cannot be compared"))
        );
        let values = match self.unique.output {
            UniqueOutput::Count => vec![groups.first.len() as i64],
            UniqueOutput::First { .. } => numbers(groups.first),
            UniqueOutput::Counts { .. } => numbers(groups.counts),
            UniqueOutput::Inverse => numbers(groups.group_of),
        };
        write(&values, tensors.output)
    }
}

#[derive(Debug)]
struct SuppressionStep {
    suppression: NonMaxSuppression,
    images: usize,
    classes: usize,
    boxes: usize,
    wanted: Found,
}

pub(super) fn non_max_suppression(
    lowering: &Lowering<'_>,
    suppression: &movement::NonMaxSuppression,
) -> Result<Box<dyn Step>> {
    let &[images, classes, boxes] = lowering.input(1)?.shape.dims() else {
        return Err(broken("its scores are not [images, classes, boxes]"));
    };
    let movement::NonMaxSuppression { most, iou_threshold, score_threshold, center_point, found } = *suppression;
    let suppression = NonMaxSuppression { most, iou_threshold, score_threshold, center_point };
    Ok(Box::new(SuppressionStep { suppression, images, classes, boxes, wanted: found }))
}

impl Step for SuppressionStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (boxes, scores) = (typed(tensors.input(0)?)?, typed(tensors.input(1)?)?);
        let picked = self.suppression.run(self.images, self.classes, self.boxes, boxes, scores);
        match self.wanted {
            Found::Count => write(&[picked.len() as i64], tensors.output),
            Found::All { .. } => write(&numbers(picked.into_iter().flatten()), tensors.output),
        }
    }
}
