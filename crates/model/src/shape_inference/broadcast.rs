//! Numpy's broadcasting over dimensions with a batch. It never lets the batch stretch along another dimension.

use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::shape_inference::{Dims, rows_meet, shown};

/// The dimensions that `left` and `right` broadcast to, aligned at the last.
pub fn broadcast(left: &[Dim], right: &[Dim]) -> LoadResult<Dims> {
    let rank = left.len().max(right.len());
    let at = |dims: &[Dim], index: usize| match (index + dims.len()).checked_sub(rank) {
        Some(index) => dims[index],
        None => Dim::Fixed(1),
    };
    (0..rank)
        .map(|index| match (at(left, index), at(right, index)) {
            (left, right) if left == right => Ok(left),
            (Dim::Fixed(1), other) | (other, Dim::Fixed(1)) => Ok(other),
            (Dim::Batch, Dim::Fixed(size)) | (Dim::Fixed(size), Dim::Batch) => Err(rows_meet(&format!(
                "{} and {} would pair it with a dimension of {size}",
                shown(left),
                shown(right)
            ))),
            _ => Err(LoadError::malformed(format!("the shapes {} and {} do not broadcast", shown(left), shown(right)))),
        })
        .collect()
}
