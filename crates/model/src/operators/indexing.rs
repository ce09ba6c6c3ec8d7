//! Operators that pick or replace parts of a tensor by indices: Gather and Scatter in their forms, TensorScatter, OneHot, Trilu,
//! ReverseSequence and Compress.

use insula_core::{DType, Shape};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::op::Op;
use crate::op::movement::{Combine, Movement};
use crate::operators::node_import::resolve_axis;
use crate::operators::slicing::fixed;
use crate::operators::{Item, NodeImport};

pub(super) fn gather(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (data, indices) = (node.value(0)?, node.value(1)?);
    let axis = axis(node, data, 0)?;
    node.compute(Op::Move(Movement::Gather { axis }), &[data, indices]).map(Item::Value)
}

pub(super) fn gather_elements(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (data, indices) = (node.value(0)?, node.value(1)?);
    let axis = axis(node, data, 0)?;
    node.compute(Op::Move(Movement::GatherElements { axis }), &[data, indices]).map(Item::Value)
}

pub(super) fn gather_nd(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (data, indices) = (node.value(0)?, node.value(1)?);
    let batch_dims = match node.opset >= 12 {
        true => node.attributes.int("batch_dims")?.unwrap_or(0),
        false => 0,
    };
    let batch_dims = usize::try_from(batch_dims)
        .map_err(|_| LoadError::malformed(format!("attribute `batch_dims` is {batch_dims}, expected 0 or more")))?;
    node.compute(Op::Move(Movement::GatherNd { batch_dims }), &[data, indices]).map(Item::Value)
}

/// Also Scatter, as it was called before opset 11.
pub(super) fn scatter_elements(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (data, indices, updates) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let (axis, combine) = (axis(node, data, 0)?, combine(node)?);
    node.compute(Op::Move(Movement::ScatterElements { axis, combine }), &[data, indices, updates]).map(Item::Value)
}

pub(super) fn scatter_nd(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (data, indices, updates) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let combine = combine(node)?;
    node.compute(Op::Move(Movement::ScatterNd { combine }), &[data, indices, updates]).map(Item::Value)
}

fn axis(node: &NodeImport<'_>, data: crate::graph::ValueId, default: i64) -> LoadResult<usize> {
    resolve_axis(node.attributes.int("axis")?.unwrap_or(default), node.rank(data))
}

fn combine(node: &NodeImport<'_>) -> LoadResult<Option<Combine>> {
    let reduction = if node.opset >= 16 { node.attributes.text("reduction")? } else { None };
    Ok(match reduction.unwrap_or("none") {
        "none" => None,
        "add" => Some(Combine::Add),
        "mul" => Some(Combine::Multiply),
        "max" => Some(Combine::Max),
        "min" => Some(Combine::Min),
        _ => return Err(LoadError::malformed("attribute `reduction` must be none, add, mul, max or min")),
    })
}

pub(super) fn tensor_scatter(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (cache, update) = (node.value(0)?, node.value(1)?);
    let axis = axis(node, cache, -2)?;
    let circular = match node.attributes.text("mode")?.unwrap_or("linear") {
        "linear" => false,
        "circular" => true,
        _ => return Err(LoadError::malformed("attribute `mode` must be linear or circular")),
    };
    let inputs: Vec<_> = [cache, update].into_iter().chain(node.optional(2)?).collect();
    node.compute(Op::Move(Movement::CacheUpdate { axis, circular }), &inputs).map(Item::Value)
}

/// The depth is known; indices of any type of number become INT64.
pub(super) fn one_hot(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (mut indices, values) = (node.value(0)?, node.value(2)?);
    let rank = node.rank(indices);
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(-1), rank + 1)?;
    let depth = node.known(1)?.ok_or_else(|| LoadError::malformed("input 1, the depth, is left out"))?;
    let depth = match depth.dtype() {
        DType::Fp32 | DType::Fp16 => depth.to_f32()?.iter().map(|depth| *depth as i64).collect(),
        _ => depth.to_i64()?,
    };
    let &[depth] = &depth[..] else { return Err(LoadError::malformed("its depth is not one number")) };
    let depth = usize::try_from(depth).map_err(|_| LoadError::malformed(format!("its depth is {depth}")))?;
    if node.tensor(indices).dtype != DType::Int64 {
        indices = node.compute(Op::Cast { to: DType::Int64 }, &[indices])?;
    }
    node.compute(Op::Move(Movement::OneHot { axis, depth }), &[indices, values]).map(Item::Value)
}

pub(super) fn trilu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let upper = node.attributes.flag("upper", true)?;
    let offset = match node.optional(1)? {
        Some(offset) => offset,
        None => {
            let zero = Constant::new(DType::Int64, Shape::default(), &[0; 8])?;
            node.graph.add_constant(node.name.clone(), zero)?
        }
    };
    let found = node.tensor(offset);
    if found.dtype != DType::Int64 || found.dims.contains(&Dim::Batch) || found.shape(1)?.elements() != 1 {
        return Err(LoadError::malformed("input 1, the diagonal, is not one INT64"));
    }
    node.compute(Op::Move(Movement::Triangle { upper }), &[input, offset]).map(Item::Value)
}

pub(super) fn reverse_sequence(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, lengths) = (node.value(0)?, node.value(1)?);
    let axis = |name, default| match node.attributes.int(name)?.unwrap_or(default) {
        0 => Ok(0),
        1 => Ok(1),
        other => Err(LoadError::malformed(format!("attribute `{name}` is {other}, expected 0 or 1"))),
    };
    let (time_axis, batch_axis) = (axis("time_axis", 0)?, axis("batch_axis", 1)?);
    node.compute(Op::Move(Movement::ReverseSequence { time_axis, batch_axis }), &[input, lengths]).map(Item::Value)
}

/// The condition is known: what it keeps are indices to gather.
pub(super) fn compress(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let mut input = node.value(0)?;
    let axis = match node.attributes.int("axis")? {
        Some(axis) => resolve_axis(axis, node.rank(input))?,
        None => {
            let elements = fixed(&node.dims(input))?.iter().product();
            input = node.view(input, [Dim::Fixed(elements)].into_iter().collect())?;
            0
        }
    };
    let condition = node.known(1)?.ok_or_else(|| LoadError::malformed("input 1, the condition, is left out"))?;
    if condition.dtype() != DType::Bool {
        return Err(LoadError::malformed(format!("its condition has type {}, expected BOOL", condition.dtype())));
    }
    let kept = condition.bytes().iter().enumerate().filter(|(_, keep)| **keep != 0);
    let kept: Vec<i64> = kept.map(|(position, _)| position as i64).collect();
    let kept = Constant::new(DType::Int64, Shape::new(&[kept.len()])?, bytemuck::cast_slice(&kept))?;
    let kept = node.graph.add_constant(node.name.clone(), kept)?;
    node.compute(Op::Move(Movement::Gather { axis }), &[input, kept]).map(Item::Value)
}
