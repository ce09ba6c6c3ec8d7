//! Operators that work element by element: arithmetic, activations and conversions.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::op::{Activation, BinaryOp, Op};
use crate::operators::{Item, NodeImport};
use crate::tensor_reader::element_type;

pub(super) fn add(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    binary(node, BinaryOp::Add)
}

pub(super) fn sub(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    binary(node, BinaryOp::Sub)
}

pub(super) fn mul(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    binary(node, BinaryOp::Mul)
}

pub(super) fn div(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    binary(node, BinaryOp::Div)
}

pub(super) fn relu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    activation(node, Activation::Relu)
}

pub(super) fn sigmoid(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    activation(node, Activation::Sigmoid)
}

pub(super) fn tanh(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    activation(node, Activation::Tanh)
}

/// Bounds are attributes before opset 11 and constant inputs from then on; left out, there is no bound.
pub(super) fn clip(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (min, max) = match node.opset < 11 {
        true => (node.attributes.float("min")?, node.attributes.float("max")?),
        false => (node.scalar(1)?, node.scalar(2)?),
    };
    if node.opset < 11 && node.inputs.len() > 1 {
        return Err(LoadError::malformed("its bounds are attributes before opset 11, not inputs"));
    }
    let (min, max) = (min.unwrap_or(f32::NEG_INFINITY), max.unwrap_or(f32::INFINITY));
    if min.is_nan() || max.is_nan() {
        return Err(LoadError::malformed("a bound is NaN"));
    }
    activation(node, Activation::Clip { min, max })
}

/// A cast to the type that the tensor has already is the tensor itself.
pub(super) fn cast(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let to = node.attributes.int("to")?.ok_or_else(|| LoadError::malformed("attribute `to` is missing"))?;
    if node.opset >= 19 {
        // these two say how to round to 8-bit floats, which are refused
        node.attributes.int("saturate")?;
        node.attributes.text("round_mode")?;
    }
    let to = element_type(i32::try_from(to).unwrap_or(0))?;
    if let (DType::Int64, Some(Some(Item::Sizes(sizes)))) = (to, node.inputs.first()) {
        return Ok(Item::Sizes(sizes.clone()));
    }
    let input = node.value(0)?;
    if node.tensor(input).dtype == to {
        return Ok(Item::Value(input));
    }
    node.compute(Op::Cast { to }, &[input]).map(Item::Value)
}

fn binary(node: &mut NodeImport<'_>, op: BinaryOp) -> LoadResult<Item> {
    let (left, right) = (node.value(0)?, node.value(1)?);
    node.compute(Op::Binary(op), &[left, right]).map(Item::Value)
}

fn activation(node: &mut NodeImport<'_>, activation: Activation) -> LoadResult<Item> {
    let input = node.value(0)?;
    node.compute(Op::Activation(activation), &[input]).map(Item::Value)
}
