//! Dimensions after reductions, normalisations and what runs along an axis; none of the axes may be the batch.

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::shape_inference::{Dims, rows_meet, shown};

/// An operation along `axis` that keeps the shape.
pub(super) fn along(dims: &[Dim], axis: usize) -> LoadResult<Dims> {
    check_axis(dims, axis)?;
    Ok(dims.into())
}

/// A normalisation of the first input along its last axis, with a factor and a summand an element of it.
pub(super) fn normalized(inputs: &[&TensorType]) -> LoadResult<Dims> {
    let dims = &inputs[0].dims;
    let Some(last) = dims.len().checked_sub(1) else {
        return Err(LoadError::malformed("a scalar has no axis to normalise along"));
    };
    check_axis(dims, last)?;
    for (index, input) in inputs.iter().enumerate().skip(1) {
        if input.dims[..] != dims[last..] {
            return Err(LoadError::malformed(format!(
                "input {index} has shape {}, the last dimension of {} was expected",
                shown(&input.dims),
                shown(dims)
            )));
        }
    }
    Ok(dims.clone())
}

/// A reduction over `axes`.
pub(super) fn reduced(dims: &[Dim], axes: &[usize], keep_dims: bool) -> LoadResult<Dims> {
    if axes.is_empty() || axes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(LoadError::malformed(format!("the axes {axes:?} are not one or more different axes in order")));
    }
    for &axis in axes {
        check_axis(dims, axis)?;
    }
    let kept = dims.iter().enumerate().filter_map(|(axis, dim)| match (axes.contains(&axis), keep_dims) {
        (false, _) => Some(*dim),
        (true, true) => Some(Dim::Fixed(1)),
        (true, false) => None,
    });
    Ok(kept.collect())
}

fn check_axis(dims: &[Dim], axis: usize) -> LoadResult<()> {
    match dims.get(axis) {
        None => Err(LoadError::malformed(format!("axis {axis} does not exist in shape {}", shown(dims)))),
        Some(Dim::Batch) => Err(rows_meet("it runs along the batch")),
        Some(Dim::Fixed(_)) => Ok(()),
    }
}
