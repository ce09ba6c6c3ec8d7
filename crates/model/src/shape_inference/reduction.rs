//! Dimensions after Softmax, ArgMax and ReduceMean: operations along axes, none of which may be the batch.

use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::shape_inference::{Dims, rows_meet, shown};

/// An operation along `axis` that keeps the shape.
pub(super) fn along(dims: &[Dim], axis: usize) -> LoadResult<Dims> {
    check_axis(dims, axis)?;
    Ok(dims.into())
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
