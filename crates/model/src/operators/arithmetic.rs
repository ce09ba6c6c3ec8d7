//! Arithmetic of two and more tensors.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{BinaryOp, Op};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{is_float, is_integer};

macro_rules! binaries {
    ($($name:ident: $op:ident),*) => {$(
        pub(super) fn $name(node: &mut NodeImport<'_>) -> LoadResult<Item> {
            let (left, right) = (node.value(0)?, node.value(1)?);
            node.binary(BinaryOp::$op, left, right).map(Item::Value)
        }
    )*};
}
binaries!(add: Add, sub: Sub, mul: Mul, div: Div);

/// The remainder with the divisor's sign, or with `fmod` the dividend's.
pub(super) fn modulo(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let op = if node.attributes.flag("fmod", false)? { BinaryOp::Fmod } else { BinaryOp::Mod };
    let (left, right) = (node.value(0)?, node.value(1)?);
    node.binary(op, left, right).map(Item::Value)
}

/// The exponent takes the base's type; between an integer base and an exponent with a fraction the power is computed in FP64.
/// Squares and cubes are products.
pub(super) fn pow(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (base, exponent) = (node.value(0)?, node.value(1)?);
    let (dtype, exponent_dtype) = (node.tensor(base).dtype, node.tensor(exponent).dtype);
    if let Some(power) = small_power(node, base, exponent)? {
        return Ok(Item::Value(power));
    }
    let computed = if is_integer(dtype) && is_float(exponent_dtype) { DType::Fp64 } else { dtype };
    let (base, exponent) = (node.cast(base, computed)?, node.cast(exponent, computed)?);
    let power = node.binary(BinaryOp::Pow, base, exponent)?;
    node.cast(power, dtype).map(Item::Value)
}

fn small_power(node: &mut NodeImport<'_>, base: ValueId, exponent: ValueId) -> LoadResult<Option<ValueId>> {
    let dims = node.dims(exponent);
    let one = node.graph.constant(exponent).filter(|constant| constant.shape().elements() == 1);
    let exponent = one.and_then(|constant| constant.to_f32().ok()).map(|value| value[0]);
    if dims.len() > node.rank(base) || (exponent != Some(2.0) && exponent != Some(3.0)) {
        return Ok(None);
    }
    let square = node.binary(BinaryOp::Mul, base, base)?;
    match exponent {
        Some(3.0) => node.binary(BinaryOp::Mul, square, base).map(Some),
        _ => Ok(Some(square)),
    }
}

/// x, or x times the slope below 0; the slope is made to fit x.
pub(super) fn prelu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, slope) = (node.value(0)?, node.value(1)?);
    let output = node.binary(BinaryOp::PRelu, input, slope)?;
    match node.dims(output) == node.dims(input) {
        true => Ok(Item::Value(output)),
        false => Err(LoadError::malformed("its slope does not broadcast to its input")),
    }
}

macro_rules! variadic {
    ($($name:ident: $op:ident),*) => {$(
        pub(super) fn $name(node: &mut NodeImport<'_>) -> LoadResult<Item> {
            chain(node, BinaryOp::$op).map(Item::Value)
        }
    )*};
}
variadic!(max: Max, min: Min, sum: Add);

pub(super) fn mean(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let sum = chain(node, BinaryOp::Add)?;
    let count = node.inputs.len() as f64;
    node.binary_number(BinaryOp::Div, sum, count).map(Item::Value)
}

/// All inputs, one after the other.
fn chain(node: &mut NodeImport<'_>, op: BinaryOp) -> LoadResult<ValueId> {
    let mut total = node.value(0)?;
    for index in 1..node.inputs.len() {
        let next = node.value(index)?;
        total = node.compute(Op::Binary(op), &[total, next])?;
    }
    Ok(total)
}
