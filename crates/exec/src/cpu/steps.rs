//! The steps of CPU plans, one file an operation. Each works out at load what its kernel needs to know, refuses what does
//! not fit, and at run time only turns bytes into slices.

pub(super) mod activation;
pub(super) mod arg_max;
pub(super) mod binary;
pub(super) mod cast;
pub(super) mod conv;
pub(super) mod matmul;
pub(super) mod pool;
pub(super) mod reduce_mean;
pub(super) mod softmax;
pub(super) mod transpose;
mod window;

use insula_kernels::Strip;

/// A tensor of shape `dims` seen as slices of strips along `axis`: how many slices, and the strip.
fn slices_along(dims: &[usize], axis: usize) -> Option<(usize, Strip)> {
    let (outer, rest) = dims.split_at_checked(axis)?;
    let (&axis, inner) = rest.split_first()?;
    Some((outer.iter().product(), Strip { axis, inner: inner.iter().product() }))
}
