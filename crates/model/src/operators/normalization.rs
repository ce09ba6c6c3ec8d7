//! BatchNormalization at inference: with constant statistics it is one factor and one summand a channel.

use insula_core::Shape;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::op::{BinaryOp, Op};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{is_arithmetic, shown};

/// y = x * scale / sqrt(variance + epsilon) + (bias - mean * scale / sqrt(variance + epsilon)), the constants in f64.
pub(super) fn batch_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let epsilon = f64::from(node.attributes.float("epsilon")?.unwrap_or(1e-5));
    // how training would update the statistics
    node.attributes.float("momentum")?;
    if node.opset < 9 && !node.attributes.flag("spatial", true)? {
        return Err(LoadError::unsupported("`spatial` 0, statistics an element; statistics a channel are supported"));
    }
    if node.opset >= 14 && node.attributes.flag("training_mode", false)? {
        return Err(LoadError::unsupported("`training_mode` 1; models are run for inference alone"));
    }
    let input = node.value(0)?;
    let tensor = node.tensor(input).clone();
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
