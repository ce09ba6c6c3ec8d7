//! Functions of one tensor, element by element.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::op::{Activation, BinaryOp, Function, Op};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{is_float, is_integer};

macro_rules! functions {
    ($($name:ident: $function:ident),* $(,)?) => {$(
        pub(super) fn $name(node: &mut NodeImport<'_>) -> LoadResult<Item> {
            function(node, Function::$function)
        }
    )*};
}
functions! {
    abs: Abs, neg: Neg, sign: Sign, exp: Exp, log: Log, sqrt: Sqrt, reciprocal: Reciprocal, erf: Erf,
    floor: Floor, ceil: Ceil, round: Round, sin: Sin, cos: Cos, tan: Tan, asin: Asin, acos: Acos, atan: Atan,
    sinh: Sinh, cosh: Cosh, asinh: Asinh, acosh: Acosh, atanh: Atanh,
    softplus: Softplus, softsign: Softsign, mish: Mish,
}

pub(super) fn sigmoid(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    activation(node, Activation::Sigmoid)
}

pub(super) fn tanh(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    activation(node, Activation::Tanh)
}

pub(super) fn hard_swish(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    activation(node, Activation::HardSwish)
}

/// Of integers the larger of x and 0.
pub(super) fn relu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    match is_integer(node.tensor(input).dtype) {
        true => node.binary_number(BinaryOp::Max, input, 0.0).map(Item::Value),
        false => activation(node, Activation::Relu),
    }
}

pub(super) fn leaky_relu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let slope = node.attributes.float("alpha")?.unwrap_or(0.01);
    activation(node, Activation::LeakyRelu { slope })
}

pub(super) fn hard_sigmoid(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(0.2);
    let beta = node.attributes.float("beta")?.unwrap_or(0.5);
    activation(node, Activation::HardSigmoid { alpha, beta })
}

pub(super) fn swish(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1.0);
    activation(node, Activation::Swish { alpha })
}

/// Swish of the first input times the second.
pub(super) fn swiglu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1.0);
    let (gate, linear) = (node.value(0)?, node.value(1)?);
    if node.dims(gate) != node.dims(linear) {
        return Err(LoadError::malformed("its inputs have different shapes"));
    }
    let gate = node.compute(Op::Activation(Activation::Swish { alpha }), &[gate])?;
    node.binary(BinaryOp::Mul, gate, linear).map(Item::Value)
}

pub(super) fn gelu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    match node.attributes.text("approximate")?.unwrap_or("none") {
        "none" => activation(node, Activation::Gelu),
        "tanh" => activation(node, Activation::GeluTanh),
        other => Err(LoadError::malformed(format!("`approximate` is `{other}`, expected `none` or `tanh`"))),
    }
}

pub(super) fn elu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1.0);
    function(node, Function::Elu { alpha, scale: 1.0, divisor: 1.0 })
}

pub(super) fn selu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1.673_263_2);
    let scale = node.attributes.float("gamma")?.unwrap_or(1.050_701);
    function(node, Function::Elu { alpha, scale, divisor: 1.0 })
}

pub(super) fn celu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1.0);
    function(node, Function::Elu { alpha, scale: 1.0, divisor: alpha })
}

pub(super) fn thresholded_relu(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let threshold = node.attributes.float("alpha")?.unwrap_or(1.0);
    function(node, Function::ThresholdedRelu { threshold })
}

/// Of integers through FP64.
pub(super) fn shrink(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let threshold = node.attributes.float("lambd")?.unwrap_or(0.5);
    let bias = node.attributes.float("bias")?.unwrap_or(0.0);
    let input = node.value(0)?;
    let dtype = node.tensor(input).dtype;
    let float = node.cast(input, if is_float(dtype) { dtype } else { DType::Fp64 })?;
    let shrunk = node.function(Function::Shrink { threshold, bias }, float)?;
    node.cast(shrunk, dtype).map(Item::Value)
}

/// Bounds are attributes before opset 11 and inputs from then on; left out, there is no bound. Constant bounds of FP32 and FP16
/// are one operation, all others are Max and Min.
pub(super) fn clip(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    if node.opset < 11 && node.inputs.len() > 1 {
        return Err(LoadError::malformed("its bounds are attributes before opset 11, not inputs"));
    }
    let input = node.value(0)?;
    let bounds = match node.opset < 11 {
        true => Some((node.attributes.float("min")?, node.attributes.float("max")?)),
        false => constant_bounds(node)?,
    };
    if let Some((min, max)) = bounds {
        let (min, max) = (min.unwrap_or(f32::NEG_INFINITY), max.unwrap_or(f32::INFINITY));
        if min.is_nan() || max.is_nan() {
            return Err(LoadError::malformed("a bound is NaN"));
        }
        return activation(node, Activation::Clip { min, max });
    }
    let mut clipped = input;
    for (index, op) in [(1, BinaryOp::Max), (2, BinaryOp::Min)] {
        if let Some(bound) = node.optional(index)? {
            let bound = node.view(bound, Default::default())?;
            clipped = node.binary(op, clipped, bound)?;
        }
    }
    Ok(Item::Value(clipped))
}

/// The bounds that are there, if all of them are FP32 or FP16 constants with one element.
fn constant_bounds(node: &mut NodeImport<'_>) -> LoadResult<Option<(Option<f32>, Option<f32>)>> {
    let mut bounds = [None, None];
    for (index, bound) in bounds.iter_mut().enumerate() {
        let Some(value) = node.optional(index + 1)? else { continue };
        let Some(constant) = node.graph.constant(value) else { return Ok(None) };
        match constant.to_f32().as_deref() {
            Ok([one]) => *bound = Some(*one),
            _ => return Ok(None),
        }
    }
    let [min, max] = bounds;
    let input = node.value(0)?;
    Ok(is_float(node.tensor(input).dtype).then_some((min, max)))
}

fn function(node: &mut NodeImport<'_>, function: Function) -> LoadResult<Item> {
    let input = node.value(0)?;
    node.function(function, input).map(Item::Value)
}

fn activation(node: &mut NodeImport<'_>, activation: Activation) -> LoadResult<Item> {
    let input = node.value(0)?;
    node.compute(Op::Activation(activation), &[input]).map(Item::Value)
}
