//! Poolings by windows and of whole images: the largest, the mean and norms.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{AveragePool, LpPool, MaxPositions, Op, Pads, Reduce, Reduction, Window};
use crate::operators::window_attributes::{Spatial, extend_for_ceil_mode, window};
use crate::operators::{Item, NodeImport};

pub(super) fn max_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let column_major = node.attributes.flag("storage_order", false)?;
    let (input, window, _) = pooled(node, node.opset >= 10, node.opset >= 10)?;
    // single precision holds every integer of 8 bits
    let dtype = node.tensor(input).dtype;
    let narrow = matches!(dtype, DType::Uint8 | DType::Int8);
    let input = if narrow { node.compute(Op::Cast { to: DType::Fp32 }, &[input])? } else { input };
    let image = node.channels_last(input)?;
    if node.wants(1) {
        let positions = node.compute(Op::MaxPositions(MaxPositions { window, column_major }), &[image])?;
        let positions = node.channels_second(positions)?;
        node.more_outputs.push(Item::Value(positions));
    }
    let mut output = node.compute(Op::MaxPool(window), &[image])?;
    if narrow {
        output = node.compute(Op::Cast { to: dtype }, &[output])?;
    }
    node.channels_second(output).map(Item::Value)
}

pub(super) fn lp_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let p = degree(node)?;
    let (input, window, _) = pooled(node, node.opset >= 18, node.opset >= 18)?;
    finish(node, input, Op::LpPool(LpPool { window, p }))
}

pub(super) fn global_max_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, window) = whole_image(node)?;
    finish(node, input, Op::MaxPool(window))
}

pub(super) fn global_lp_pool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let p = degree(node)?;
    let (input, window) = whole_image(node)?;
    finish(node, input, Op::LpPool(LpPool { window, p }))
}

fn degree(node: &NodeImport<'_>) -> LoadResult<i32> {
    let p = node.attributes.int("p")?.unwrap_or(2);
    i32::try_from(p)
        .ok()
        .filter(|p| *p >= 1)
        .ok_or_else(|| LoadError::malformed(format!("attribute `p` is {p}, expected at least 1")))
}

/// The input, and a window that covers it.
fn whole_image(node: &mut NodeImport<'_>) -> LoadResult<(ValueId, Window)> {
    let input = node.value(0)?;
    let kernel = Spatial::of(node, input)?.size;
    Ok((input, Window { kernel, strides: [1; 3], dilations: [1; 3], pads: Pads::default() }))
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
