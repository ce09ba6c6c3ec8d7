//! The sum of a Conv or MatMul with another tensor of its shape becomes its residual. Of two candidates the later takes the
//! other on; it moves to where the sum was, when both are there.

use crate::error::LoadResult;
use crate::graph::{NodeOp, ValueId};
use crate::op::{BinaryOp, Op};
use crate::passes::fusion::Fusion;

pub(super) fn fuse(fusion: &mut Fusion<'_>, index: usize) -> LoadResult<bool> {
    let Some(sum) = fusion.nodes[index].as_ref().filter(|node| node.epilogue.is_none()) else { return Ok(false) };
    let (left, right, output) = (sum.inputs.first().copied(), sum.inputs.get(1).copied(), sum.output);
    let (NodeOp::Compute(Op::Binary(BinaryOp::Add)), Some(left), Some(right)) = (&sum.op, left, right) else {
        return Ok(false);
    };
    let same = |value: ValueId| {
        fusion.graph.tensor(value) == fusion.graph.tensor(output) && fusion.graph.constant(value).is_none()
    };
    if left == right || !same(left) || !same(right) {
        return Ok(false);
    }
    let candidate = |value: ValueId| match fusion.linear_writer(value) {
        Some((into, Op::Conv(_) | Op::MatMul)) => Some(into),
        _ => None,
    };
    let (into, residual) = match (candidate(left), candidate(right)) {
        (Some(first), Some(second)) if first > second => (first, right),
        (_, Some(second)) => (second, left),
        (Some(first), None) => (first, right),
        (None, None) => return Ok(false),
    };
    let Some(mut node) = fusion.nodes[into].take() else { return Ok(false) };
    node.epilogue.residual = Some(residual);
    node.output = output;
    fusion.nodes[index] = Some(node);
    Ok(true)
}
