//! MaxPool, AveragePool and GlobalAveragePool.

use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{AveragePool, Op, Reduce, Reduction, Window};
use crate::operators::window_attributes::{Spatial, extend_for_ceil_mode, window};
use crate::operators::{Item, NodeImport};

pub(super) fn max_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    // the order in which indices are counted, and indices are not given
    node.attributes.int("storage_order")?;
    let (input, window, _) = pooled(node, node.opset >= 10, node.opset >= 10)?;
    finish(node, input, Op::MaxPool(window))
}

pub(super) fn average_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let count_include_pad = node.attributes.flag("count_include_pad", false)?;
    let (input, window, overhang) = pooled(node, node.opset >= 19, node.opset >= 10)?;
    finish(node, input, Op::AveragePool(AveragePool { window, count_include_pad, overhang }))
}

/// The mean over all axes after the channels.
pub(super) fn global_average_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let rank = node.rank(input);
    if rank < 3 {
        return Err(LoadError::malformed(format!("its input has {rank} dimensions, expected at least 3")));
    }
    node.compute(
        Op::Reduce(Reduce { reduction: Reduction::Mean, axes: (2..rank).collect(), keep_dims: true }),
        &[input],
    )
    .map(Item::Value)
}

/// What is pooled, the window, and how much of its padding `ceil_mode` has added.
fn pooled(
    node: &mut NodeImport<'_>,
    has_dilations: bool,
    has_ceil_mode: bool,
) -> LoadResult<(ValueId, Window, [usize; 3])> {
    let input = node.value(0)?;
    let spatial = Spatial::of(node, input)?;
    let mut window = window(node, spatial, None, has_dilations)?;
    let overhang = match has_ceil_mode && node.attributes.flag("ceil_mode", false)? {
        true => extend_for_ceil_mode(&mut window, spatial.size)?,
        false => [0; 3],
    };
    Ok((input, window, overhang))
}

fn finish(node: &mut NodeImport<'_>, input: ValueId, op: Op) -> LoadResult<Item> {
    let image = node.channels_last(input)?;
    let output = node.compute(op, &[image])?;
    node.channels_second(output).map(Item::Value)
}
