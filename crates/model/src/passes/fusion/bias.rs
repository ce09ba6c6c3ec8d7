//! A summand an element of the last dimension, after a Conv, MatMul or Binary, becomes its bias.

use insula_core::{DType, Shape};

use crate::constant::{Constant, ConstantId};
use crate::error::{LoadError, LoadResult};
use crate::op::{BinaryOp, Op};
use crate::passes::fusion::Fusion;

pub(super) fn fuse(fusion: &mut Fusion<'_>, index: usize) -> LoadResult<bool> {
    let Some((op @ (BinaryOp::Add | BinaryOp::Sub), value, constant)) = fusion.with_constant(index) else {
        return Ok(false);
    };
    let Some((into, Op::Conv(_) | Op::ConvTranspose(_) | Op::MatMul | Op::Binary(_))) = fusion.linear_writer(value)
    else {
        return Ok(false);
    };
    let Some(summands) = fusion.along_last(value, &constant) else { return Ok(false) };
    if !fusion.graph.charge_derived(summands.len() * 4) {
        return Ok(false);
    }
    let old = fusion.nodes[into].as_ref().and_then(|node| node.epilogue.bias);
    let old = match old {
        Some(old) => fusion.graph.constants[old.index()].to_f32()?.into_owned(),
        None => vec![0.0; summands.len()],
    };
    let sign = if op == BinaryOp::Sub { -1.0 } else { 1.0 };
    let biases: Vec<f32> = old.iter().zip(&summands).map(|(old, summand)| old + sign * summand).collect();
    set(fusion, into, &biases)?;
    fusion.absorb(into, index);
    Ok(true)
}

/// Gives node `into` the bias `biases`.
pub(super) fn set(fusion: &mut Fusion<'_>, into: usize, biases: &[f32]) -> LoadResult<()> {
    let constants = &mut fusion.graph.constants;
    let id = u32::try_from(constants.len()).map_err(|_| LoadError::limit("the model has too many constants"))?;
    constants.push(Constant::of_f32(DType::Fp32, Shape::new(&[biases.len()])?, biases)?);
    if let Some(node) = &mut fusion.nodes[into] {
        node.epilogue.bias = Some(ConstantId(id));
    }
    Ok(())
}
