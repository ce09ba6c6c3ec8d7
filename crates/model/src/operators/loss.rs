//! Losses: the negative logarithm of the probability of each target, for training's metrics at inference.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{BinaryOp, Comparison, Function, Reduction};
use crate::operators::{Item, NodeImport, softmax};
use crate::shape_inference::Dims;

pub(super) fn negative_log_likelihood_loss(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let logarithms = node.value(0)?;
    loss(node, logarithms).map(Item::Value)
}

/// Its further output is the logarithm of the probabilities.
pub(super) fn softmax_cross_entropy_loss(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let scores = node.value(0)?;
    let logarithms = softmax::normalized(node, scores, 1, true)?;
    let loss = loss(node, logarithms)?;
    node.more_outputs.push(Item::Value(logarithms));
    Ok(Item::Value(loss))
}

/// Of `[N, C, ..]` logarithms, with the targets `[N, ..]` and a weight a class as inputs 1 and 2.
fn loss(node: &mut NodeImport<'_>, logarithms: ValueId) -> LoadResult<ValueId> {
    let reduction = node.attributes.text("reduction")?.unwrap_or("mean");
    let ignored = node.attributes.int("ignore_index")?;
    let (dims, dtype) = (node.dims(logarithms), node.tensor(logarithms).dtype);
    let Some(&Dim::Fixed(classes)) = dims.get(1) else {
        return Err(LoadError::malformed("its input has no dimension of classes"));
    };
    let weights = class_weights(node, (classes, dims.len()), dtype, ignored)?;
    let target = node.value(1)?;
    let target = node.cast(target, DType::Int64)?;
    let mut target_dims: Dims = node.dims(target);
    if target_dims.len() + 1 != dims.len() {
        return Err(LoadError::malformed("its targets do not have one dimension fewer than its input"));
    }
    target_dims.insert(1, Dim::Fixed(1));
    let target = node.view(target, target_dims.clone())?;
    let positions = node.range_along(classes, 1, dims.len())?;
    let chosen = node.compare(Comparison::Equal, positions, target)?;
    let zero = node.number(dtype, 0.0)?;
    let weighted = node.binary(BinaryOp::Mul, logarithms, weights)?;
    let picked = node.choose(chosen, weighted, zero)?;
    let picked = node.reduce_to(Reduction::Sum, picked, [1].into_iter().collect(), false)?;
    let losses = node.function(Function::Neg, picked)?;
    let all = (0..dims.len() - 1).collect();
    match reduction {
        "none" => Ok(losses),
        "sum" => node.reduce_to(Reduction::Sum, losses, all, false),
        "mean" => {
            let weight = node.choose(chosen, weights, zero)?;
            let weight = node.reduce_to(Reduction::Sum, weight, (0..dims.len()).collect(), false)?;
            let sum = node.reduce_to(Reduction::Sum, losses, all, false)?;
            node.binary(BinaryOp::Div, sum, weight)
        }
        other => Err(LoadError::malformed(format!("`reduction` is `{other}`, expected `none`, `sum` or `mean`"))),
    }
}

/// The weight of each class, 1 where none are given, 0 for the one that is ignored.
fn class_weights(
    node: &mut NodeImport<'_>,
    (classes, rank): (usize, usize),
    dtype: DType,
    ignored: Option<i64>,
) -> LoadResult<ValueId> {
    let one = node.number(dtype, 1.0)?;
    let weights = match node.optional(2)? {
        Some(weights) => node.along_axis(weights, 1, rank)?,
        None => one,
    };
    let positions = node.range_along(classes, 1, rank)?;
    let ignored = node.number(DType::Int64, ignored.unwrap_or(-1) as f64)?;
    let out = node.compare(Comparison::Equal, positions, ignored)?;
    let zero = node.number(dtype, 0.0)?;
    node.choose(out, zero, weights)
}
