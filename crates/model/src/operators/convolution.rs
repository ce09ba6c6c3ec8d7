//! Conv, with one to three spatial axes and groups. ONNX's images have channels second, the graph's have them last.

use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{BinaryOp, Conv, Op};
use crate::operators::window_attributes::{Spatial, window};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::shown;

pub(super) fn conv(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, weight, bias) = (node.value(0)?, node.value(1)?, node.optional(2)?);
    let spatial = Spatial::of(node, input)?;
    let kernel = spatial.weight_kernel(node, weight)?;
    let groups = groups(node)?;
    let window = window(node, spatial, Some(kernel), true)?;
    let image = node.channels_last(input)?;
    let output = node.compute(Op::Conv(Conv { window, groups }), &[image, weight])?;
    with_bias(node, output, bias)
}

fn groups(node: &NodeImport<'_>) -> LoadResult<usize> {
    let groups = node.attributes.int("group")?.unwrap_or(1);
    usize::try_from(groups).map_err(|_| LoadError::malformed(format!("attribute `group` is {groups}")))
}

/// Adds a bias, one value a channel, to an output with channels last, and moves these second.
fn with_bias(node: &mut NodeImport<'_>, mut output: ValueId, bias: Option<ValueId>) -> LoadResult<Item> {
    if let Some(bias) = bias {
        if node.rank(bias) != 1 || node.dims(bias).last() != node.dims(output).last() {
            let shape = shown(&node.dims(bias));
            return Err(LoadError::malformed(format!(
                "the bias has shape {shape}, expected one value an output channel"
            )));
        }
        output = node.compute(Op::Binary(BinaryOp::Add), &[output, bias])?;
    }
    node.channels_second(output).map(Item::Value)
}
