//! Softmax, ArgMax and ReduceMean.

use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::op::{ArgExtreme, Axes, Op, Reduce, Reduction};
use crate::operators::node_import::resolve_axis;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, rows_meet};

/// From opset 13 along one axis, the last by default. Before, along all axes from `axis` (by default 1) on together.
pub(super) fn softmax(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let together = node.opset < 13;
    let input = node.value(0)?;
    let dims = node.dims(input);
    let axis = node.attributes.int("axis")?.unwrap_or(if together { 1 } else { -1 });
    let axis = match usize::try_from(axis) {
        // before opset 13 the axis may be the rank: rows of one element
        Ok(axis) if together && axis == dims.len() => axis,
        _ => resolve_axis(axis, dims.len())?,
    };
    if !together {
        return node.compute(Op::Softmax { axis, logarithm: false }, &[input]).map(Item::Value);
    }
    let mut columns = 1usize;
    for dim in &dims[axis..] {
        let Dim::Fixed(size) = dim else { return Err(rows_meet("it runs along the batch")) };
        columns = columns.checked_mul(*size).ok_or_else(|| LoadError::limit("its shape has too many elements"))?;
    }
    let flat: Dims = dims[..axis].iter().copied().chain([Dim::Fixed(columns)]).collect();
    let flat = node.view(input, flat)?;
    let normalised = node.compute(Op::Softmax { axis, logarithm: false }, &[flat])?;
    node.view(normalised, dims).map(Item::Value)
}

pub(super) fn arg_max(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(0), node.rank(input))?;
    let keep_dims = node.attributes.flag("keepdims", true)?;
    let select_last_index = node.opset >= 12 && node.attributes.flag("select_last_index", false)?;
    node.compute(Op::ArgExtreme(ArgExtreme { largest: true, axis, keep_dims, select_last_index }), &[input])
        .map(Item::Value)
}

/// The axes are an attribute before opset 18 and a constant input from then on. None means all, or with
/// `noop_with_empty_axes` none.
pub(super) fn reduce_mean(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let rank = node.rank(input);
    let keep_dims = node.attributes.flag("keepdims", true)?;
    let given = match node.opset < 18 {
        true if node.inputs.len() > 1 => {
            return Err(LoadError::malformed("its axes are an attribute before opset 18, not an input"));
        }
        true => node.attributes.ints("axes")?.map(<[i64]>::to_vec),
        false => node.integers(1)?,
    };
    let nothing_to_do = node.opset >= 18 && node.attributes.flag("noop_with_empty_axes", false)?;
    let axes = match given.filter(|axes| !axes.is_empty()) {
        Some(given) => resolve_axes(&given, rank)?,
        None if nothing_to_do => return Ok(Item::Value(input)),
        None => (0..rank).collect(),
    };
    if axes.is_empty() {
        return Ok(Item::Value(input));
    }
    node.compute(Op::Reduce(Reduce { reduction: Reduction::Mean, axes, keep_dims }), &[input]).map(Item::Value)
}

/// The axes that ONNX's `axes` mean, ascending. Fails when one is given twice.
pub(super) fn resolve_axes(axes: &[i64], rank: usize) -> LoadResult<Axes> {
    let resolved: LoadResult<Axes> = axes.iter().map(|&axis| resolve_axis(axis, rank)).collect();
    let mut resolved = resolved?;
    resolved.sort_unstable();
    match resolved.windows(2).any(|pair| pair[0] == pair[1]) {
        false => Ok(resolved),
        true => Err(LoadError::malformed(format!("the axes {axes:?} name one twice"))),
    }
}
