//! An activation after a Conv, MatMul or Binary becomes the end of it.

use crate::error::LoadResult;
use crate::graph::NodeOp;
use crate::op::Op;
use crate::passes::fusion::Fusion;

pub(super) fn fuse(fusion: &mut Fusion<'_>, index: usize) -> LoadResult<bool> {
    let Some(node) = &fusion.nodes[index] else { return Ok(false) };
    let NodeOp::Compute(Op::Activation(activation)) = node.op else { return Ok(false) };
    let Some((into, Op::Conv(_) | Op::ConvTranspose(_) | Op::MatMul | Op::Binary(_))) =
        fusion.open_writer(node.inputs[0])
    else {
        return Ok(false);
    };
    if let Some(node) = &mut fusion.nodes[into] {
        node.epilogue.activation = Some(activation);
    }
    fusion.absorb(into, index);
    Ok(true)
}
