//! Operators that cut tensors, join them or put something around them: Slice, Split, Concat, Pad, CenterCropPad.

use std::iter::repeat_n;

use insula_core::Shape;
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::movement::{AxisSlice, Movement, Pad, PadMode};
use crate::op::{Axes, Op};
use crate::operators::node_import::resolve_axis;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, rows_meet};

/// Starts, ends and axes are attributes before opset 10 and known inputs from then on.
pub(super) fn slice(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let mut slices = SmallVec::new();
    for Cut { axis, start, end, step } in cuts(node, dims.len())? {
        match dims[axis] {
            Dim::Batch if start == 0 && end >= i64::from(i32::MAX) && step == 1 => {}
            Dim::Batch => return Err(rows_meet(&format!("it would be cut from {start} to {end} by {step}"))),
            Dim::Fixed(size) => slices.push(cut(axis, size, start, end, step)),
        }
    }
    sliced(node, input, slices).map(Item::Value)
}

/// What Slice says about an axis.
pub(super) struct Cut {
    pub axis: usize,
    pub start: i64,
    pub end: i64,
    pub step: i64,
}

/// What a Slice of a tensor of `rank` dimensions says.
pub(super) fn cuts(node: &NodeImport<'_>, rank: usize) -> LoadResult<Vec<Cut>> {
    let missing = |what: &str| LoadError::malformed(format!("its {what} are missing"));
    let (starts, ends, axes, steps) = match node.opset < 10 {
        true => {
            let list = |name| Ok::<_, LoadError>(node.attributes.ints(name)?.map(<[i64]>::to_vec));
            (list("starts")?, list("ends")?, list("axes")?, None)
        }
        false => (node.integers(1)?, node.integers(2)?, node.integers(3)?, node.integers(4)?),
    };
    let (starts, ends) = (starts.ok_or_else(|| missing("starts"))?, ends.ok_or_else(|| missing("ends"))?);
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|length| *length != starts.len()) {
        return Err(LoadError::malformed("its starts, ends, axes and steps have different lengths"));
    }
    let mut cuts: Vec<Cut> = Vec::with_capacity(starts.len());
    for (index, axis) in axes.into_iter().enumerate() {
        let cut = Cut { axis: resolve_axis(axis, rank)?, start: starts[index], end: ends[index], step: steps[index] };
        if cut.step == 0 || cuts.iter().any(|other| other.axis == cut.axis) {
            return Err(LoadError::malformed(format!("axis {axis} is cut twice, or by step 0")));
        }
        cuts.push(cut);
    }
    Ok(cuts)
}

/// numpy's slice of an axis of `size` positions.
pub(super) fn cut(axis: usize, size: usize, start: i64, end: i64, step: i64) -> AxisSlice {
    let length = size as i64;
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |at: i64| if at < 0 { at.saturating_add(length) } else { at }.clamp(lowest, highest);
    let (start, end) = (bound(start), bound(end));
    let reach = if step > 0 { end - start } else { start - end };
    let stride = i64::try_from(step.unsigned_abs()).unwrap_or(i64::MAX);
    let count = if reach > 0 { (reach - 1) / stride + 1 } else { 0 };
    // a step is only taken when there are two positions
    let step = if count > 1 { step } else { 1 };
    AxisSlice { axis, start: usize::try_from(start).unwrap_or(0), step, size: usize::try_from(count).unwrap_or(0) }
}

/// `input` with `slices`, or itself when they keep everything.
pub(super) fn sliced(
    node: &mut NodeImport<'_>,
    input: ValueId,
    mut slices: SmallVec<[AxisSlice; 2]>,
) -> LoadResult<ValueId> {
    let dims = node.dims(input);
    slices.retain(|slice| Dim::Fixed(slice.size) != dims[slice.axis] || (slice.step != 1 && slice.size > 1));
    if slices.is_empty() {
        return Ok(input);
    }
    node.compute(Op::Move(Movement::Slice(slices)), &[input])
}

/// The sizes are an attribute before opset 13 and a known input from then on; without, all parts are as large as can be.
pub(super) fn split(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(0), dims.len())?;
    let sizes = match node.opset < 13 {
        true => node.attributes.ints("split")?.map(<[i64]>::to_vec),
        false => node.integers(1)?,
    };
    let outputs = node.wanted.len();
    let parts = match node.opset >= 18 {
        true => node.attributes.int("num_outputs")?,
        false => None,
    };
    let Dim::Fixed(size) = dims[axis] else { return Err(rows_meet("they would be split")) };
    let sizes = match (sizes, parts) {
        (Some(sizes), None) => sizes,
        (None, parts) => equal_parts(size, parts.and_then(|parts| usize::try_from(parts).ok()).unwrap_or(outputs)),
        (Some(_), Some(_)) => return Err(LoadError::malformed("it has both sizes and `num_outputs`")),
    };
    let mut items = Vec::with_capacity(outputs);
    let mut start = 0usize;
    for part in sizes {
        let part = usize::try_from(part).ok().filter(|part| *part <= size - start);
        let Some(part) = part else { return Err(LoadError::malformed("its sizes are not those of the axis")) };
        let slice = AxisSlice { axis, start, step: 1, size: part };
        items.push(Item::Value(sliced(node, input, SmallVec::from_iter([slice]))?));
        start += part;
    }
    if start != size || items.len() < outputs {
        return Err(LoadError::malformed(format!("its sizes add up to {start}, the axis has {size}")));
    }
    let mut items = items.into_iter();
    let first = items.next().ok_or_else(|| LoadError::malformed("it has no parts"))?;
    node.more_outputs.extend(items);
    Ok(first)
}

/// All parts of one size, but the last, which may be smaller.
fn equal_parts(size: usize, parts: usize) -> Vec<i64> {
    let part = size.div_ceil(parts.max(1));
    (0..parts).map(|index| part.min(size.saturating_sub(index * part)) as i64).collect()
}

pub(super) fn concat(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let axis = node.attributes.int("axis")?.ok_or_else(|| LoadError::malformed("attribute `axis` is missing"))?;
    let inputs = (0..node.inputs.len()).map(|index| node.value(index)).collect::<LoadResult<Vec<_>>>()?;
    let axis = resolve_axis(axis, node.rank(inputs[0]))?;
    if let [input] = inputs[..] {
        return Ok(Item::Value(input));
    }
    node.compute(Op::Move(Movement::Concat { axis }), &inputs).map(Item::Value)
}

/// Pads are an attribute before opset 11 and a known input from then on.
pub(super) fn pad(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let rank = node.rank(input);
    let mode = match node.attributes.text("mode")?.unwrap_or("constant") {
        "constant" => PadMode::Constant,
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        "wrap" if node.opset >= 19 => PadMode::Wrap,
        _ => return Err(LoadError::malformed("attribute `mode` must be constant, edge, reflect or wrap")),
    };
    let (pads, axes) = match node.opset < 11 {
        true => (node.attributes.ints("pads")?.map(<[i64]>::to_vec), None),
        false => (node.integers(1)?, node.integers(3)?),
    };
    let pads = pads.ok_or_else(|| LoadError::malformed("its pads are missing"))?;
    let axes: Axes = match axes {
        Some(axes) => axes.iter().map(|axis| resolve_axis(*axis, rank)).collect::<LoadResult<_>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(LoadError::malformed(format!("{} pads for {} axes, expected two each", pads.len(), axes.len())));
    }
    let (before, after) = pads.split_at(axes.len());
    let mut wanted: SmallVec<[[i64; 2]; 4]> = SmallVec::from_elem([0, 0], rank);
    for (index, axis) in axes.into_iter().enumerate() {
        wanted[axis] = [before[index], after[index]];
    }
    let fill = fill(node, input, mode)?;
    padded(node, input, &wanted, mode, fill).map(Item::Value)
}

/// What constant padding shows.
fn fill(node: &mut NodeImport<'_>, input: ValueId, mode: PadMode) -> LoadResult<Option<ValueId>> {
    let dtype = node.tensor(input).dtype;
    let given = match node.opset < 11 {
        true => match node.attributes.float("value")? {
            Some(value) if value != 0.0 => Some(node.scalar_constant(dtype, value)?),
            _ => None,
        },
        false => node.optional(2)?,
    };
    match (mode, given) {
        (PadMode::Constant, Some(given)) => Ok(Some(given)),
        (PadMode::Constant, None) => zero(node, input).map(Some),
        _ => Ok(None),
    }
}

/// A scalar zero of `like`'s type.
pub(super) fn zero(node: &mut NodeImport<'_>, like: ValueId) -> LoadResult<ValueId> {
    let dtype = node.tensor(like).dtype;
    let size = dtype.size().ok_or_else(|| LoadError::unsupported("padding of byte strings"))?;
    let constant = Constant::new(dtype, Shape::default(), &[0; 8][..size])?;
    node.graph.add_constant(node.name.clone(), constant)
}

/// `input` with `pads` before and behind each axis, where negative ones cut.
pub(super) fn padded(
    node: &mut NodeImport<'_>,
    input: ValueId,
    pads: &[[i64; 2]],
    mode: PadMode,
    fill: Option<ValueId>,
) -> LoadResult<ValueId> {
    let dims = node.dims(input);
    let size = |pad: i64| {
        usize::try_from(pad.unsigned_abs()).map_err(|_| LoadError::limit(format!("padding by {pad} is too much")))
    };
    let (mut slices, mut before, mut after) = (SmallVec::new(), Axes::new(), Axes::new());
    for (axis, &[first, last]) in pads.iter().enumerate() {
        before.push(if first > 0 { size(first)? } else { 0 });
        after.push(if last > 0 { size(last)? } else { 0 });
        if first >= 0 && last >= 0 {
            continue;
        }
        let Dim::Fixed(whole) = dims[axis] else { return Err(rows_meet("they would be cut")) };
        let cut_before = if first < 0 { size(first)? } else { 0 };
        let cut_after = if last < 0 { size(last)? } else { 0 };
        let kept = whole.checked_sub(cut_before).and_then(|rest| rest.checked_sub(cut_after));
        let kept = kept.ok_or_else(|| LoadError::malformed(format!("axis {axis} is cut by more than its {whole}")))?;
        slices.push(AxisSlice { axis, start: cut_before, step: 1, size: kept });
    }
    let cut = sliced(node, input, slices)?;
    if before.iter().chain(&after).all(|pad| *pad == 0) {
        return Ok(cut);
    }
    let inputs: SmallVec<[ValueId; 2]> = [cut].into_iter().chain(fill).collect();
    node.compute(Op::Move(Movement::Pad(Pad { before, after, mode })), &inputs)
}

/// Cuts and pads around the centre.
pub(super) fn center_crop_pad(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let sizes = node.integers(1)?.ok_or_else(|| LoadError::malformed("input 1, the shape, is left out"))?;
    let axes: Axes = match node.attributes.ints("axes")? {
        Some(axes) => axes.iter().map(|axis| resolve_axis(*axis, dims.len())).collect::<LoadResult<_>>()?,
        None => (0..dims.len()).collect(),
    };
    if axes.len() != sizes.len() {
        return Err(LoadError::malformed(format!("{} sizes for {} axes", sizes.len(), axes.len())));
    }
    let mut pads: Vec<[i64; 2]> = repeat_n([0, 0], dims.len()).collect();
    for (&axis, &wanted) in axes.iter().zip(&sizes) {
        let Dim::Fixed(size) = dims[axis] else { return Err(rows_meet("they would be cut or padded")) };
        let missing = wanted.checked_sub(size as i64).filter(|_| wanted > 0);
        let missing = missing.ok_or_else(|| LoadError::malformed(format!("the shape holds {wanted}")))?;
        // both ways the first half is the smaller: cutting drops more behind, padding adds more behind
        let first = missing / 2;
        pads[axis] = [first, missing - first];
    }
    let fill = zero(node, input)?;
    padded(node, input, &pads, PadMode::Constant, Some(fill)).map(Item::Value)
}

/// All dimensions of `dims`, which are fixed. Fails for the batch.
pub(super) fn fixed(dims: &Dims) -> LoadResult<Vec<usize>> {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => Ok(*size),
        Dim::Batch => Err(rows_meet("the operation would go across them")),
    };
    dims.iter().map(size).collect()
}
