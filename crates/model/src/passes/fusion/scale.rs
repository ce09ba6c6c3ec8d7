//! A factor an output channel after a Conv or MatMul with a constant weight goes into the weight (and the bias so far).

use insula_core::Shape;

use crate::constant::Constant;
use crate::error::LoadResult;
use crate::graph::ValueId;
use crate::op::{BinaryOp, Op};
use crate::passes::fusion::{Fusion, bias};

pub(super) fn fuse(fusion: &mut Fusion<'_>, index: usize) -> LoadResult<bool> {
    let Some((BinaryOp::Mul, value, constant)) = fusion.with_constant(index) else { return Ok(false) };
    let Some((into, op)) = fusion.linear_writer(value) else { return Ok(false) };
    let convolution = match op {
        Op::Conv(_) => true,
        Op::MatMul => false,
        _ => return Ok(false),
    };
    let (Some(factors), Some(node)) = (fusion.along_last(value, &constant), &fusion.nodes[into]) else {
        return Ok(false);
    };
    let (weight_value, old_bias) = (node.inputs[1], node.epilogue.bias);
    let Some(weight) = fusion.graph.constant(weight_value).cloned() else { return Ok(false) };
    // 8: the scaled weight is made in FP32 on its way, and the bias is scaled too
    if !fusion.graph.charge_derived(weight.bytes().len().saturating_add(factors.len() * 8)) {
        return Ok(false);
    }
    let scaled = match convolution {
        true => scaled_rows(&weight, &factors)?,
        false => scaled_columns(&weight, &factors)?,
    };
    let scaled = add(fusion, weight_value, scaled)?;
    if let Some(old) = old_bias {
        let biases: Vec<f32> = fusion.graph.constants[old.index()]
            .to_f32()?
            .iter()
            .zip(&factors)
            .map(|(bias, factor)| bias * factor)
            .collect();
        bias::set(fusion, into, &biases)?;
    }
    if let Some(node) = &mut fusion.nodes[into] {
        node.inputs[1] = scaled;
    }
    fusion.absorb(into, index);
    Ok(true)
}

fn add(fusion: &mut Fusion<'_>, like: ValueId, constant: Constant) -> LoadResult<ValueId> {
    let name = fusion.graph.values[like.index()].name.clone();
    fusion.graph.add_constant(name, constant)
}

/// A convolution's weight `[M, ..]`: one factor a row.
fn scaled_rows(weight: &Constant, factors: &[f32]) -> LoadResult<Constant> {
    let elements = weight.to_f32()?;
    let row = (elements.len() / factors.len().max(1)).max(1);
    let scaled: Vec<f32> = elements.iter().enumerate().map(|(index, element)| element * factors[index / row]).collect();
    finish(weight, &scaled)
}

/// A matrix `[.., K, N]`: one factor a column.
fn scaled_columns(weight: &Constant, factors: &[f32]) -> LoadResult<Constant> {
    let elements = weight.to_f32()?;
    let scaled: Vec<f32> =
        elements.iter().enumerate().map(|(index, element)| element * factors[index % factors.len()]).collect();
    finish(weight, &scaled)
}

fn finish(weight: &Constant, scaled: &[f32]) -> LoadResult<Constant> {
    let shape: Shape = weight.shape().clone();
    Ok(Constant::of_f32(weight.dtype(), shape, scaled)?)
}
