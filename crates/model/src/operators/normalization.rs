//! BatchNormalization: with constant statistics it is one factor and one summand a channel, else it is arithmetic.

use insula_core::Shape;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{BinaryOp, Function, Op, Reduction};
use crate::operators::layer_normalization::affine;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{is_arithmetic, shown};

/// y = x * scale / sqrt(variance + epsilon) + (bias - mean * scale / sqrt(variance + epsilon)), the constants in f64.
pub(super) fn batch_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let epsilon = f64::from(node.attributes.float("epsilon")?.unwrap_or(1e-5));
    // how training updates the statistics
    let momentum = f64::from(node.attributes.float("momentum")?.unwrap_or(0.9));
    if node.opset < 9 && !node.attributes.flag("spatial", true)? {
        return Err(LoadError::unsupported("`spatial` 0, statistics an element; statistics a channel are supported"));
    }
    if node.opset >= 14 && node.attributes.flag("training_mode", false)? {
        return by_own_statistics(node, epsilon, momentum).map(Item::Value);
    }
    let input = node.value(0)?;
    let tensor = node.tensor(input).clone();
    if !is_arithmetic(tensor.dtype) || !are_constants(node)? {
        let (mean, variance) = (node.value(3)?, node.value(4)?);
        let (mean, variance) = (along_channels(node, mean)?, along_channels(node, variance)?);
        return normalized(node, mean, variance, epsilon).map(Item::Value);
    }
    let (Some(&Dim::Fixed(channels)), true) = (tensor.dims.get(1), is_arithmetic(tensor.dtype)) else {
        let shape = shown(&tensor.dims);
        return Err(LoadError::unsupported(format!(
            "an input of type {} and shape {shape}; FP32 and FP16 with channels as dimension 1 are supported",
            tensor.dtype
        )));
    };
    let [scale, bias, mean, variance] = [
        parameter(node, 1, "scale", channels)?,
        parameter(node, 2, "bias", channels)?,
        parameter(node, 3, "mean", channels)?,
        parameter(node, 4, "variance", channels)?,
    ];
    let factors: Vec<f64> =
        scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + epsilon).sqrt()).collect();
    let summands: Vec<f32> =
        bias.iter().zip(&mean).zip(&factors).map(|((bias, mean), factor)| (bias - mean * factor) as f32).collect();
    let factors: Vec<f32> = factors.into_iter().map(|factor| factor as f32).collect();
    let shape = Shape::new(&[channels])?;
    let factor =
        node.graph.add_constant(node.name.clone(), Constant::of_f32(tensor.dtype, shape.clone(), &factors)?)?;
    let summand = node.graph.add_constant(node.name.clone(), Constant::of_f32(tensor.dtype, shape, &summands)?)?;
    let last = node.channels_last(input)?;
    let scaled = node.compute(Op::Binary(BinaryOp::Mul), &[last, factor])?;
    let shifted = node.compute(Op::Binary(BinaryOp::Add), &[scaled, summand])?;
    node.channels_second(shifted).map(Item::Value)
}

fn are_constants(node: &mut NodeImport<'_>) -> LoadResult<bool> {
    for index in 1..5 {
        let value = node.value(index)?;
        if node.graph.constant(value).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A vector of channels in the input's type and rank.
fn along_channels(node: &mut NodeImport<'_>, vector: ValueId) -> LoadResult<ValueId> {
    let input = node.value(0)?;
    let (rank, dtype) = (node.rank(input), node.tensor(input).dtype);
    let vector = node.cast(vector, dtype)?;
    node.along_axis(vector, 1, rank)
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias, with statistics that are known at run time or in another type.
fn normalized(node: &mut NodeImport<'_>, mean: ValueId, variance: ValueId, epsilon: f64) -> LoadResult<ValueId> {
    let (input, scale, bias) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let centred = node.binary(BinaryOp::Sub, input, mean)?;
    let variance = node.binary_number(BinaryOp::Add, variance, epsilon)?;
    let deviation = node.function(Function::Sqrt, variance)?;
    let normal = node.binary(BinaryOp::Div, centred, deviation)?;
    affine(node, normal, scale, bias)
}

/// As in training: by the mean and the variance of the tensor itself, which then move the two given ones.
fn by_own_statistics(node: &mut NodeImport<'_>, epsilon: f64, momentum: f64) -> LoadResult<ValueId> {
    let input = node.value(0)?;
    let axes: Vec<usize> = (0..node.rank(input)).filter(|axis| *axis != 1).collect();
    let mean = node.reduce(Reduction::Mean, input, &axes)?;
    let centred = node.binary(BinaryOp::Sub, input, mean)?;
    let square = node.binary(BinaryOp::Mul, centred, centred)?;
    let variance = node.reduce(Reduction::Mean, square, &axes)?;
    for (index, own) in [(3, mean), (4, variance)] {
        let given = node.value(index)?;
        let (dims, dtype) = (node.dims(given), node.tensor(given).dtype);
        let own = node.view(own, dims)?;
        let own = node.cast(own, dtype)?;
        let kept = node.binary_number(BinaryOp::Mul, given, momentum)?;
        let moved = node.binary_number(BinaryOp::Mul, own, 1.0 - momentum)?;
        let updated = node.binary(BinaryOp::Add, kept, moved)?;
        node.more_outputs.push(Item::Value(updated));
    }
    normalized(node, mean, variance, epsilon)
}

fn parameter(node: &mut NodeImport<'_>, index: usize, name: &str, channels: usize) -> LoadResult<Vec<f64>> {
    let value = node.value(index)?;
    let Some(constant) = node.graph.constant(value) else {
        return Err(LoadError::unsupported(format!("its {name} must be a constant")));
    };
    if constant.shape().dims() != [channels] {
        return Err(LoadError::malformed(format!("its {name} has shape {}, expected [{channels}]", constant.shape())));
    }
    Ok(constant.to_f32()?.iter().map(|value| f64::from(*value)).collect())
}
