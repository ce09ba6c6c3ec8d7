//! MaxPool, AveragePool and GlobalAveragePool.

use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{AveragePool, Op, Window};
use crate::operators::convolution::image_size;
use crate::operators::window_attributes::{extend_for_ceil_mode, window};
use crate::operators::{Item, NodeImport};

pub(super) fn max_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    // the order in which indices are counted, and indices are not given
    node.attributes.int("storage_order")?;
    let ceil_mode = node.opset >= 10 && node.attributes.flag("ceil_mode", false)?;
    let (input, mut window, size) = pooled(node, node.opset >= 10)?;
    if ceil_mode {
        extend_for_ceil_mode(&mut window, size)?;
    }
    finish(node, input, Op::MaxPool(window))
}

pub(super) fn average_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let count_include_pad = node.attributes.flag("count_include_pad", false)?;
    let ceil_mode = node.opset >= 10 && node.attributes.flag("ceil_mode", false)?;
    let (input, mut window, size) = pooled(node, node.opset >= 19)?;
    if ceil_mode {
        let pads = window.pads;
        extend_for_ceil_mode(&mut window, size)?;
        if count_include_pad && window.pads != pads {
            return Err(LoadError::unsupported(
                "ceil_mode with count_include_pad where a window reaches beyond the padding; pad the image so that the windows fit",
            ));
        }
    }
    finish(node, input, Op::AveragePool(AveragePool { window, count_include_pad }))
}

/// The mean over all axes after the channels.
pub(super) fn global_average_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let rank = node.rank(input);
    if rank < 3 {
        return Err(LoadError::malformed(format!("its input has {rank} dimensions, expected at least 3")));
    }
    node.compute(Op::ReduceMean { axes: (2..rank).collect(), keep_dims: true }, &[input]).map(Item::Value)
}

fn pooled(node: &mut NodeImport<'_>, has_dilations: bool) -> LoadResult<(ValueId, Window, [usize; 2])> {
    let input = node.value(0)?;
    let size = image_size(node, input)?;
    Ok((input, window(node, size, None, has_dilations)?, size))
}

fn finish(node: &mut NodeImport<'_>, input: ValueId, op: Op) -> LoadResult<Item> {
    let image = node.channels_last(input)?;
    let output = node.compute(op, &[image])?;
    node.channels_second(output).map(Item::Value)
}
