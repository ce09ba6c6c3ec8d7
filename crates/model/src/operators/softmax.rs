//! Softmax, LogSoftmax and Hardmax.

use insula_core::DType;

use crate::error::LoadResult;
use crate::graph::ValueId;
use crate::op::{ArgExtreme, BinaryOp, Comparison, Function, Op, Reduction};
use crate::operators::node_import::resolve_axis;
use crate::operators::{Item, NodeImport};

pub(super) fn softmax(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    along(node, |node, input, axis| normalized(node, input, axis, false))
}

pub(super) fn log_softmax(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    along(node, |node, input, axis| normalized(node, input, axis, true))
}

/// 1 at the first largest element, else 0.
pub(super) fn hardmax(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    along(node, |node, input, axis| {
        let (dims, dtype) = (node.dims(input), node.tensor(input).dtype);
        let arg = ArgExtreme { largest: true, axis, keep_dims: true, select_last_index: false };
        let largest = node.compute(Op::ArgExtreme(arg), &[input])?;
        let count = super::compose::fixed_elements(&dims[axis..=axis])?;
        let positions = node.range_along(count, axis, dims.len())?;
        let found = node.compare(Comparison::Equal, positions, largest)?;
        node.cast(found, dtype)
    })
}

/// From opset 13 along one axis, the last by default. Before, along all axes from `axis` (by default 1) on together.
fn along(
    node: &mut NodeImport<'_>,
    apply: impl FnOnce(&mut NodeImport<'_>, ValueId, usize) -> LoadResult<ValueId>,
) -> LoadResult<Item> {
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
        return apply(node, input, axis).map(Item::Value);
    }
    let flat = node.flat_from(input, axis)?;
    let normalised = apply(node, flat, axis)?;
    node.view(normalised, dims).map(Item::Value)
}

/// FP32 and FP16 in one operation, BF16 through FP32, FP64 in several.
pub(super) fn normalized(
    node: &mut NodeImport<'_>,
    input: ValueId,
    axis: usize,
    logarithm: bool,
) -> LoadResult<ValueId> {
    match node.tensor(input).dtype {
        DType::Bf16 => {
            let single = node.cast(input, DType::Fp32)?;
            let output = node.compute(Op::Softmax { axis, logarithm }, &[single])?;
            node.cast(output, DType::Bf16)
        }
        DType::Fp64 => {
            let max = node.reduce(Reduction::Max, input, &[axis])?;
            let less = node.binary(BinaryOp::Sub, input, max)?;
            let powers = node.function(Function::Exp, less)?;
            let sum = node.reduce(Reduction::Sum, powers, &[axis])?;
            if !logarithm {
                return node.binary(BinaryOp::Div, powers, sum);
            }
            let sum = node.function(Function::Log, sum)?;
            node.binary(BinaryOp::Sub, less, sum)
        }
        _ => node.compute(Op::Softmax { axis, logarithm }, &[input]),
    }
}
