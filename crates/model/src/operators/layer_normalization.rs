//! Normalisations that take their statistics from the tensor itself: over the last axes, over channels or groups of them, or by
//! a norm.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{AveragePool, BinaryOp, Comparison, Function, Op, Pads, Reduction, Window};
use crate::operators::compose::fixed_elements;
use crate::operators::node_import::resolve_axis;
use crate::operators::reduction::resolve_axes;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::Dims;

/// Its further outputs are the mean and the inverse of the deviation.
pub(super) fn layer_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (axis, epsilon) = axis_and_epsilon(node)?;
    let (input, scale, bias) = (node.value(0)?, node.value(1)?, node.optional(2)?);
    let output = over_last(node, input, axis, Rows { centred: true, epsilon, scale: Some(scale), bias })?;
    if node.wants(1) || node.wants(2) {
        let single = node.cast(input, DType::Fp32)?;
        let axes: Vec<usize> = (axis..node.rank(input)).collect();
        let (mean, _, deviation) = statistics(node, single, &axes, epsilon)?;
        let inverse = node.function(Function::Reciprocal, deviation)?;
        node.more_outputs.extend([Item::Value(mean), Item::Value(inverse)]);
    }
    Ok(Item::Value(output))
}

pub(super) fn rms_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (axis, epsilon) = axis_and_epsilon(node)?;
    let (input, scale) = (node.value(0)?, node.value(1)?);
    let rows = Rows { centred: false, epsilon, scale: Some(scale), bias: None };
    over_last(node, input, axis, rows).map(Item::Value)
}

fn axis_and_epsilon(node: &mut NodeImport<'_>) -> LoadResult<(usize, f32)> {
    let input = node.value(0)?;
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(-1), node.rank(input))?;
    // the type of the statistics: FP32, or FP64 where the input is
    node.attributes.int("stash_type")?;
    Ok((axis, node.attributes.float("epsilon")?.unwrap_or(1e-5)))
}

/// Of each channel of each image alone.
pub(super) fn instance_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let epsilon = node.attributes.float("epsilon")?.unwrap_or(1e-5);
    let (input, scale, bias) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let rank = node.rank(input);
    if rank < 3 {
        return Err(LoadError::malformed(format!("its input has {rank} dimensions, expected at least 3")));
    }
    let normal = over_last(node, input, 2, Rows { centred: true, epsilon, scale: None, bias: None })?;
    affine(node, normal, scale, bias).map(Item::Value)
}

/// Of groups of channels; scale and bias are a group's before opset 21, a channel's from then on.
pub(super) fn group_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let epsilon = node.attributes.float("epsilon")?.unwrap_or(1e-5);
    let groups = node.attributes.int("num_groups")?.and_then(|groups| usize::try_from(groups).ok()).unwrap_or(0);
    if node.opset >= 21 {
        node.attributes.int("stash_type")?;
    }
    let (input, scale, bias) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let dims = node.dims(input);
    let elements = fixed_elements(dims.get(1..).unwrap_or_default())?;
    let channels = dims.get(1).copied().unwrap_or(Dim::Fixed(0));
    if groups == 0 || channels == Dim::Fixed(0) || !matches!(channels, Dim::Fixed(size) if size.is_multiple_of(groups))
    {
        return Err(LoadError::malformed(format!("`num_groups` is {groups}, expected a divisor of the channels")));
    }
    let grouped: Dims = [dims[0], Dim::Fixed(groups), Dim::Fixed(elements / groups)].into_iter().collect();
    let grouped = node.view(input, grouped)?;
    let rows = Rows { centred: true, epsilon, scale: None, bias: None };
    let normal = over_last(node, grouped, 2, rows)?;
    if node.opset < 21 {
        let scaled = affine(node, normal, scale, bias)?;
        return node.view(scaled, dims).map(Item::Value);
    }
    let normal = node.view(normal, dims)?;
    affine(node, normal, scale, bias).map(Item::Value)
}

/// Times `scale` and plus `bias`, one of each a position along axis 1.
pub(super) fn affine(node: &mut NodeImport<'_>, input: ValueId, scale: ValueId, bias: ValueId) -> LoadResult<ValueId> {
    let (rank, dtype) = (node.rank(input), node.tensor(input).dtype);
    let (scale, bias) = (node.cast(scale, dtype)?, node.cast(bias, dtype)?);
    let (scale, bias) = (node.along_axis(scale, 1, rank)?, node.along_axis(bias, 1, rank)?);
    let scaled = node.binary(BinaryOp::Mul, input, scale)?;
    node.binary(BinaryOp::Add, scaled, bias)
}

/// How rows are normalised.
struct Rows {
    centred: bool,
    epsilon: f32,
    scale: Option<ValueId>,
    bias: Option<ValueId>,
}

/// All axes from `axis` on are a row. Scale and bias of a row's size go into the operation, others broadcast after it.
fn over_last(node: &mut NodeImport<'_>, input: ValueId, axis: usize, rows: Rows) -> LoadResult<ValueId> {
    let (dims, dtype) = (node.dims(input), node.tensor(input).dtype);
    if dtype == DType::Fp64 {
        return over_last_in_double(node, input, axis, rows);
    }
    let columns = fixed_elements(&dims[axis..])?;
    let computed = if dtype == DType::Bf16 { DType::Fp32 } else { dtype };
    let wide = node.cast(input, computed)?;
    let flat = node.flat_from(wide, axis)?;
    let fits = |node: &NodeImport<'_>, value: ValueId| fixed_elements(&node.dims(value)).ok() == Some(columns);
    let whole = [rows.scale, rows.bias].iter().flatten().all(|value| fits(node, *value));
    let fused = if rows.scale.is_some() && whole { [rows.scale, rows.bias] } else { [None, None] };
    let mut inputs = vec![flat];
    for value in fused.into_iter().flatten() {
        let value = node.cast(value, computed)?;
        inputs.push(node.view(value, [Dim::Fixed(columns)].into_iter().collect())?);
    }
    let op = Op::Normalize { centred: rows.centred, epsilon: rows.epsilon };
    let normal = node.compute(op, &inputs)?;
    let mut output = node.view(normal, dims)?;
    if inputs.len() == 1 {
        for (value, op) in [(rows.scale, BinaryOp::Mul), (rows.bias, BinaryOp::Add)] {
            if let Some(value) = value {
                let value = node.cast(value, computed)?;
                output = node.binary(op, output, value)?;
            }
        }
    }
    node.cast(output, dtype)
}

fn over_last_in_double(node: &mut NodeImport<'_>, input: ValueId, axis: usize, rows: Rows) -> LoadResult<ValueId> {
    let axes: Vec<usize> = (axis..node.rank(input)).collect();
    let mut output = match rows.centred {
        true => {
            let (_, centred, deviation) = statistics(node, input, &axes, rows.epsilon)?;
            node.binary(BinaryOp::Div, centred, deviation)?
        }
        false => {
            let square = node.binary(BinaryOp::Mul, input, input)?;
            let deviation = root_of_mean(node, square, &axes, rows.epsilon)?;
            node.binary(BinaryOp::Div, input, deviation)?
        }
    };
    for (value, op) in [(rows.scale, BinaryOp::Mul), (rows.bias, BinaryOp::Add)] {
        if let Some(value) = value {
            output = node.binary(op, output, value)?;
        }
    }
    Ok(output)
}

/// The mean over `axes`, what is left without it, and the root of the variance plus `epsilon`.
fn statistics(
    node: &mut NodeImport<'_>,
    input: ValueId,
    axes: &[usize],
    epsilon: f32,
) -> LoadResult<(ValueId, ValueId, ValueId)> {
    let mean = node.reduce(Reduction::Mean, input, axes)?;
    let centred = node.binary(BinaryOp::Sub, input, mean)?;
    let square = node.binary(BinaryOp::Mul, centred, centred)?;
    Ok((mean, centred, root_of_mean(node, square, axes, epsilon)?))
}

fn root_of_mean(node: &mut NodeImport<'_>, square: ValueId, axes: &[usize], epsilon: f32) -> LoadResult<ValueId> {
    let variance = node.reduce(Reduction::Mean, square, axes)?;
    let variance = node.binary_number(BinaryOp::Add, variance, f64::from(epsilon))?;
    node.function(Function::Sqrt, variance)
}

/// Over images and places by default; the deviation has 1e-9 added.
pub(super) fn mean_variance_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let axes = node.attributes.ints("axes")?.map_or(vec![0, 2, 3], <[i64]>::to_vec);
    let axes = resolve_axes(&axes, node.rank(input))?;
    let (_, centred, deviation) = statistics(node, input, &axes, 0.0)?;
    let deviation = node.binary_number(BinaryOp::Add, deviation, 1e-9)?;
    node.binary(BinaryOp::Div, centred, deviation).map(Item::Value)
}

/// Divided by the norm along an axis; zeros where that is 0.
pub(super) fn lp_normalization(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(-1), node.rank(input))?;
    let norm = match node.attributes.int("p")?.unwrap_or(2) {
        1 => Reduction::L1,
        2 => Reduction::L2,
        other => return Err(LoadError::malformed(format!("`p` is {other}, expected 1 or 2"))),
    };
    let norm = node.reduce(norm, input, &[axis])?;
    let zero = node.number(node.tensor(input).dtype, 0.0)?;
    let nothing = node.compare(Comparison::Equal, norm, zero)?;
    let divided = node.binary(BinaryOp::Div, input, norm)?;
    // all elements are 0 where the norm is
    node.choose(nothing, input, divided).map(Item::Value)
}

/// Divided by (`bias` + `alpha` times the mean of squares over neighbouring channels) to the power `beta`.
pub(super) fn lrn(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let alpha = node.attributes.float("alpha")?.unwrap_or(1e-4);
    let beta = node.attributes.float("beta")?.unwrap_or(0.75);
    let bias = node.attributes.float("bias")?.unwrap_or(1.0);
    let size = node.attributes.int("size")?.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    let size = size.ok_or_else(|| LoadError::malformed("attribute `size` is missing or not above 0"))?;
    let input = node.value(0)?;
    let dims = node.dims(input);
    let [images, channels, places @ ..] = &dims[..] else {
        return Err(LoadError::malformed("its input has fewer than 2 dimensions"));
    };
    // channels stand where an image has its one spatial axis, places where it has its channels
    let flat: Dims = [*images, *channels, Dim::Fixed(fixed_elements(places)?)].into_iter().collect();
    let square = node.binary(BinaryOp::Mul, input, input)?;
    let flat = node.view(square, flat)?;
    let pads = Pads { before: [0, 0, (size - 1) / 2], after: [0, 0, size / 2] };
    let window = Window { kernel: [1, 1, size], strides: [1; 3], dilations: [1; 3], pads };
    let pool = AveragePool { window, count_include_pad: true, overhang: [0; 3] };
    let mean = node.compute(Op::AveragePool(pool), &[flat])?;
    let mean = node.view(mean, dims.clone())?;
    let scaled = node.binary_number(BinaryOp::Mul, mean, f64::from(alpha))?;
    let raised = node.binary_number(BinaryOp::Add, scaled, f64::from(bias))?;
    let divisor = node.binary_number(BinaryOp::Pow, raised, f64::from(beta))?;
    node.binary(BinaryOp::Div, input, divisor).map(Item::Value)
}
