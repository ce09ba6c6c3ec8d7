//! Operators that find elements by their values: TopK, and those whose output's size depends on what is found (NonZero, Unique,
//! NonMaxSuppression), which are computed before a request runs.

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::Op;
use crate::op::movement::{Found, Movement, NonMaxSuppression, Top, Unique, UniqueOutput};
use crate::operators::node_import::resolve_axis;
use crate::operators::slicing::fixed;
use crate::operators::{Item, NodeImport};

/// k is an attribute before opset 10 and a known input from then on. The outputs are sorted whether that is asked for or not.
pub(super) fn top_k(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(-1), node.rank(input))?;
    let count = match node.opset < 10 {
        true => node.attributes.int("k")?,
        false => node.integers(1)?.and_then(|count| <[i64; 1]>::try_from(count).ok()).map(|[count]| count),
    };
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or_else(|| LoadError::malformed("its k is not one number, 0 or more"))?;
    let mut largest = true;
    if node.opset >= 11 {
        largest = node.attributes.flag("largest", true)?;
        node.attributes.flag("sorted", true)?;
    }
    let top = |positions| Op::Move(Movement::Top(Top { axis, count, largest, positions }));
    let values = node.compute(top(false), &[input])?;
    if node.wants(1) {
        let positions = node.compute(top(true), &[input])?;
        node.more_outputs.push(Item::Value(positions));
    }
    Ok(Item::Value(values))
}

/// Positions of the elements that are not zero.
pub(super) fn non_zero(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    node.known(0)?;
    let input = node.value(0)?;
    let count = count(node, Op::Move(Movement::NonZero(Found::Count)), &[input])?;
    found(node, Op::Move(Movement::NonZero(Found::All { count })), &[input]).map(Item::Value)
}

/// The four outputs follow from where each group begins: its slice, its position, the group of every slice, and the counts.
pub(super) fn unique(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    node.known(0)?;
    let mut input = node.value(0)?;
    let ascending = node.attributes.flag("sorted", true)?;
    let axis = node.attributes.int("axis")?.map(|axis| resolve_axis(axis, node.rank(input))).transpose()?;
    if axis.is_none() {
        let elements = fixed(&node.dims(input))?.iter().product();
        input = node.view(input, [Dim::Fixed(elements)].into_iter().collect())?;
    }
    let op = |output| Op::Move(Movement::Unique(Unique { axis, ascending, output }));
    let count = count(node, op(UniqueOutput::Count), &[input])?;
    let first = found(node, op(UniqueOutput::First { count }), &[input])?;
    let inverse = found(node, op(UniqueOutput::Inverse), &[input])?;
    let counts = found(node, op(UniqueOutput::Counts { count }), &[input])?;
    node.more_outputs.extend([first, inverse, counts].map(Item::Value));
    let values = Op::Move(Movement::Gather { axis: axis.unwrap_or(0) });
    found(node, values, &[input, first]).map(Item::Value)
}

pub(super) fn non_max_suppression(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    node.known(0)?;
    node.known(1)?;
    let inputs = [node.value(0)?, node.value(1)?];
    let center_point = node.attributes.flag("center_point_box", false)?;
    let most = match node.integers(2)?.as_deref() {
        None => 0,
        Some([most]) => usize::try_from(*most).unwrap_or(0),
        Some(_) => return Err(LoadError::malformed("input 2, the most boxes, is not one number")),
    };
    let iou_threshold = node.scalar(3)?.unwrap_or(0.0);
    let score_threshold = node.scalar(4)?;
    let op = |found| {
        let suppression = NonMaxSuppression { most, iou_threshold, score_threshold, center_point, found };
        Op::Move(Movement::NonMaxSuppression(suppression))
    };
    let count = count(node, op(Found::Count), &inputs)?;
    found(node, op(Found::All { count }), &inputs).map(Item::Value)
}

/// How many there are, found by the device.
fn count(node: &mut NodeImport<'_>, op: Op, inputs: &[ValueId]) -> LoadResult<usize> {
    let count = found(node, op, inputs)?;
    let count = node.graph.constant(count).map(Constant::to_i64).transpose()?;
    match count.as_deref() {
        Some([count]) => Ok(usize::try_from(*count).unwrap_or(0)),
        _ => Err(LoadError::internal("the number of things found is missing", format!("{count:?}"))),
    }
}

/// The result of `op`, computed now. Fails when that would cost too much.
fn found(node: &mut NodeImport<'_>, op: Op, inputs: &[ValueId]) -> LoadResult<ValueId> {
    let name = op.name();
    let value = node.compute(op, inputs)?;
    match node.graph.constant(value).is_some() {
        true => Ok(value),
        false => Err(LoadError::limit(format!(
            "the size of {name}'s output depends on its input's values, and finding it costs more than a model may"
        ))),
    }
}
