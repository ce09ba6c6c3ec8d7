//! The steps of CPU plans, one file an operation. Each works out at load what its kernel needs to know, refuses what does
//! not fit, and at run time only turns bytes into slices.

pub(super) mod arg_extreme;
pub(super) mod binary;
pub(super) mod cast;
mod concat;
pub(super) mod conv;
pub(super) mod conv_transpose;
pub(super) mod cumulative;
pub(super) mod deform_conv;
pub(super) mod elementwise;
pub(super) mod exact_conv;
pub(super) mod exact_matmul;
mod found;
mod gather;
pub(super) mod matmul;
pub(super) mod max_positions;
pub(super) mod movement;
pub(super) mod normalize;
mod one_hot;
pub(super) mod pool;
pub(super) mod recurrent;
pub(super) mod reduce;
mod remap;
mod resize;
mod reverse;
pub(super) mod sampling;
mod scatter;
pub(super) mod softmax;
mod top;
pub(super) mod transpose;
mod triangle;
mod window;

use insula_kernels::Strip;

/// Tensors up to this size are combined in rows as long as can be; larger ones in rows of the last dimension, to be cut into tiles.
const FLAT_ELEMENTS: usize = 1 << 20;

/// A tensor of shape `dims` seen as slices of strips along `axis`: how many slices, and the strip.
fn slices_along(dims: &[usize], axis: usize) -> Option<(usize, Strip)> {
    let (outer, rest) = dims.split_at_checked(axis)?;
    let (&axis, inner) = rest.split_first()?;
    Some((outer.iter().product(), Strip { axis, inner: inner.iter().product() }))
}
