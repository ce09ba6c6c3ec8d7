//! Dimensions of a matrix product. One-dimensional inputs are views' business and refused here.

use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::shape_inference::{Dims, broadcast, rows_meet, shown};

pub(super) fn matmul(left: &[Dim], right: &[Dim]) -> LoadResult<Dims> {
    let ([left_batch @ .., rows, inner], [right_batch @ .., right_inner, columns]) = (left, right) else {
        return Err(LoadError::malformed(format!("{} x {} is not a product of matrices", shown(left), shown(right))));
    };
    if *inner == Dim::Batch || *right_inner == Dim::Batch {
        return Err(rows_meet(&format!("{} x {} would sum over it", shown(left), shown(right))));
    }
    if inner != right_inner {
        return Err(LoadError::malformed(format!(
            "{} x {}: the last dimension of the first must equal the last but one of the second",
            shown(left),
            shown(right)
        )));
    }
    let mut dims = broadcast(left_batch, right_batch)?;
    dims.push(*rows);
    dims.push(*columns);
    Ok(dims)
}
