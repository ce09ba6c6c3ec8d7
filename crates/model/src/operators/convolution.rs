//! Conv: two-dimensional, with groups. ONNX's images have channels second, the graph's have them last.

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{BinaryOp, Conv, Op};
use crate::operators::window_attributes::window;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::shown;

pub(super) fn conv(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, weight, bias) = (node.value(0)?, node.value(1)?, node.optional(2)?);
    let size = image_size(node, input)?;
    let weight_dims = node.dims(weight);
    let &[_, _, Dim::Fixed(kernel_height), Dim::Fixed(kernel_width)] = &weight_dims[..] else {
        let shape = shown(&weight_dims);
        return Err(LoadError::unsupported(format!(
            "the weight has shape {shape}; 2-D convolutions, with 4 dimensions, are supported"
        )));
    };
    if kernel_height.max(kernel_width) > crate::shape_inference::MAX_WINDOW_ATTRIBUTE {
        return Err(LoadError::limit(format!("a kernel of {kernel_height} x {kernel_width} pixels is too large")));
    }
    let groups = node.attributes.int("group")?.unwrap_or(1);
    let groups = usize::try_from(groups).map_err(|_| LoadError::malformed(format!("attribute `group` is {groups}")))?;
    let window = window(node, size, Some([kernel_height, kernel_width]), true)?;
    let image = node.channels_last(input)?;
    let mut output = node.compute(Op::Conv(Conv { window, groups }), &[image, weight])?;
    if let Some(bias) = bias {
        if node.rank(bias) != 1 || node.dims(bias)[0] != node.dims(output)[3] {
            let shape = shown(&node.dims(bias));
            return Err(LoadError::malformed(format!(
                "the bias has shape {shape}, expected one value an output channel"
            )));
        }
        output = node.compute(Op::Binary(BinaryOp::Add), &[output, bias])?;
    }
    node.channels_second(output).map(Item::Value)
}

/// Height and width of an image `[N, C, H, W]`.
pub(super) fn image_size(node: &NodeImport<'_>, input: ValueId) -> LoadResult<[usize; 2]> {
    match &node.dims(input)[..] {
        &[_, Dim::Fixed(_), Dim::Fixed(height), Dim::Fixed(width)] => Ok([height, width]),
        dims => Err(LoadError::unsupported(format!(
            "its input has shape {}; images, with 4 dimensions, are supported",
            shown(dims)
        ))),
    }
}
