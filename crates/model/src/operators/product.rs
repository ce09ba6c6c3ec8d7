//! Gemm and MatMul, as matrix products with what they need around them.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{BinaryOp, Op};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{broadcast, is_arithmetic, shown};

/// alpha * A' x B' + beta * C
pub(super) fn gemm(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1.0);
    let beta = node.attributes.float("beta")?.unwrap_or(1.0);
    let (left_transposed, right_transposed) =
        (node.attributes.flag("transA", false)?, node.attributes.flag("transB", false)?);
    let (mut left, mut right, summand) = (node.value(0)?, node.value(1)?, node.optional(2)?);
    for (input, transposed) in [(&mut left, left_transposed), (&mut right, right_transposed)] {
        if node.rank(*input) != 2 {
            let shape = shown(&node.dims(*input));
            return Err(LoadError::malformed(format!("an input has shape {shape}, expected 2 dimensions")));
        }
        if transposed {
            *input = node.transpose(*input, &[1, 0])?;
        }
    }
    let dtype = node.tensor(left).dtype;
    let mut output = node.compute(Op::MatMul, &[left, right])?;
    output = scaled(node, output, alpha, dtype)?;
    let Some(summand) = summand.filter(|_| beta != 0.0) else { return Ok(Item::Value(output)) };
    let dims = node.dims(output);
    if broadcast(&dims, &node.dims(summand))? != dims {
        let shape = shown(&node.dims(summand));
        return Err(LoadError::malformed(format!(
            "input 2 has shape {shape}, which does not broadcast to {}",
            shown(&dims)
        )));
    }
    let summand = scaled(node, summand, beta, dtype)?;
    node.compute(Op::Binary(BinaryOp::Add), &[output, summand]).map(Item::Value)
}

/// As numpy: a vector on the left is a row, one on the right a column, and that dimension goes again.
pub(super) fn matmul(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (mut left, mut right) = (widened(node, 0)?, widened(node, 1)?);
    let (left_dims, right_dims) = (node.dims(left), node.dims(right));
    if left_dims.is_empty() || right_dims.is_empty() {
        return Err(LoadError::malformed("an input is a scalar"));
    }
    let (left_is_row, right_is_column) = (left_dims.len() == 1, right_dims.len() == 1);
    if left_is_row {
        let row = [Dim::Fixed(1)].into_iter().chain(left_dims).collect();
        left = node.view(left, row)?;
    }
    if right_is_column {
        let column = right_dims.into_iter().chain([Dim::Fixed(1)]).collect();
        right = node.view(right, column)?;
    }
    let output = node.compute(Op::MatMul, &[left, right])?;
    let mut dims = node.dims(output);
    if right_is_column {
        dims.pop();
    }
    if left_is_row {
        dims.remove(dims.len() - 1 - usize::from(!right_is_column));
    }
    let output = node.view(output, dims)?;
    // what was widened gets its own type again
    let input = node.value(0)?;
    let dtype = node.tensor(input).dtype;
    match node.tensor(output).dtype == dtype {
        true => Ok(Item::Value(output)),
        false => node.compute(Op::Cast { to: dtype }, &[output]).map(Item::Value),
    }
}

/// Input `index`, bfloat16 as FP32, in which products of it are exact.
fn widened(node: &mut NodeImport<'_>, index: usize) -> LoadResult<ValueId> {
    let input = node.value(index)?;
    match node.tensor(input).dtype {
        DType::Bf16 => node.compute(Op::Cast { to: DType::Fp32 }, &[input]),
        _ => Ok(input),
    }
}

fn scaled(node: &mut NodeImport<'_>, value: ValueId, factor: f32, dtype: DType) -> LoadResult<ValueId> {
    if factor == 1.0 {
        return Ok(value);
    }
    let factor = match is_arithmetic(dtype) {
        true => node.scalar_constant(dtype, factor)?,
        false => {
            let factor = node.scalar_constant(DType::Fp32, factor)?;
            node.compute(Op::Cast { to: dtype }, &[factor])?
        }
    };
    node.compute(Op::Binary(BinaryOp::Mul), &[value, factor])
}
