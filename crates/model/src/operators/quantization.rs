//! Conversions between floats and integers with a scale and a zero point: one of each for the tensor, one a position along an
//! axis, or one a block of positions. They compute in FP32.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{BinaryOp, Function, Reduction};
use crate::operators::node_import::resolve_axis;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::Dims;
use crate::tensor_reader::element_type;

/// round(x / scale) + zero point, of halves to the even one, within the bounds of the output's type.
pub(super) fn quantize_linear(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let to = match output_type(node)? {
        Some(to) => to,
        None => match node.optional(2)? {
            Some(zero) => node.tensor(zero).dtype,
            None => DType::Uint8,
        },
    };
    if node.opset >= 19 {
        node.attributes.int("saturate")?;
    }
    if node.opset >= 23 {
        node.attributes.int("precision")?;
    }
    let input = node.value(0)?;
    let blocks = Blocks::new(node, input)?;
    let single = node.cast(input, DType::Fp32)?;
    let spread = node.view(single, blocks.spread.clone())?;
    let (scale, zero) = blocks.parameters(node)?;
    let divided = node.binary(BinaryOp::Div, spread, scale)?;
    let quantized = rounded(node, divided, zero, to)?;
    node.view(quantized, blocks.dims).map(Item::Value)
}

fn rounded(node: &mut NodeImport<'_>, divided: ValueId, zero: Option<ValueId>, to: DType) -> LoadResult<ValueId> {
    let mut whole = node.function(Function::Round, divided)?;
    if let Some(zero) = zero {
        let zero = node.cast(zero, DType::Fp32)?;
        whole = node.binary(BinaryOp::Add, whole, zero)?;
    }
    // a conversion ends at the bounds of its type
    node.cast(whole, to)
}

/// (x - zero point) * scale
pub(super) fn dequantize_linear(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let to = output_type(node)?;
    let input = node.value(0)?;
    let blocks = Blocks::new(node, input)?;
    let spread = node.view(input, blocks.spread.clone())?;
    let scale = node.value(1)?;
    let to = to.unwrap_or(node.tensor(scale).dtype);
    let (scale, zero) = blocks.parameters(node)?;
    // INT32 has no exact difference in FP32
    let exact = if node.tensor(input).dtype == DType::Int32 { DType::Int32 } else { DType::Fp32 };
    let mut difference = node.cast(spread, exact)?;
    if let Some(zero) = zero {
        let zero = node.cast(zero, exact)?;
        difference = node.binary(BinaryOp::Sub, difference, zero)?;
    }
    let single = node.cast(difference, DType::Fp32)?;
    let scaled = node.binary(BinaryOp::Mul, single, scale)?;
    let scaled = node.view(scaled, blocks.dims)?;
    node.cast(scaled, to).map(Item::Value)
}

/// To UINT8 by the tensor's own extremes; its further outputs are the scale and the zero point.
pub(super) fn dynamic_quantize_linear(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let all: Vec<usize> = (0..node.rank(input)).collect();
    let mut extremes = [input; 2];
    for (extreme, (reduction, op)) in
        extremes.iter_mut().zip([(Reduction::Max, BinaryOp::Max), (Reduction::Min, BinaryOp::Min)])
    {
        let found = node.reduce_to(reduction, input, all.iter().copied().collect(), false)?;
        *extreme = node.binary_number(op, found, 0.0)?;
    }
    let range = node.binary(BinaryOp::Sub, extremes[0], extremes[1])?;
    let scale = node.binary_number(BinaryOp::Div, range, 255.0)?;
    let zero = node.binary(BinaryOp::Div, extremes[1], scale)?;
    let zero = node.function(Function::Neg, zero)?;
    let zero = rounded(node, zero, None, DType::Uint8)?;
    let divided = node.binary(BinaryOp::Div, input, scale)?;
    let quantized = rounded(node, divided, Some(zero), DType::Uint8)?;
    node.more_outputs.extend([Item::Value(scale), Item::Value(zero)]);
    Ok(Item::Value(quantized))
}

fn output_type(node: &NodeImport<'_>) -> LoadResult<Option<DType>> {
    if node.opset < 21 {
        return Ok(None);
    }
    match node.attributes.int("output_dtype")? {
        None | Some(0) => Ok(None),
        Some(code) => element_type(i32::try_from(code).unwrap_or(0)).map(Some),
    }
}

/// How a tensor and its scales meet.
struct Blocks {
    /// The tensor's dimensions.
    dims: Dims,
    /// Those under which it meets its scales.
    spread: Dims,
    /// The scales' dimensions then.
    scales: Dims,
}

impl Blocks {
    fn new(node: &mut NodeImport<'_>, input: ValueId) -> LoadResult<Blocks> {
        let scale = node.value(1)?;
        let (dims, scale_dims) = (node.dims(input), node.dims(scale));
        let axis = if node.opset >= 13 { node.attributes.int("axis")?.unwrap_or(1) } else { 1 };
        let block = if node.opset >= 21 { node.attributes.int("block_size")?.unwrap_or(0) } else { 0 };
        if scale_dims.iter().all(|dim| *dim == Dim::Fixed(1)) && block == 0 {
            return Ok(Blocks { spread: dims.clone(), dims, scales: Dims::new() });
        }
        let axis = resolve_axis(axis, dims.len())?;
        if block == 0 {
            let one = |index: usize| if index == axis { scale_dims[0] } else { Dim::Fixed(1) };
            let scales = (0..dims.len()).map(one).collect();
            return match scale_dims.len() {
                1 => Ok(Blocks { spread: dims.clone(), dims, scales }),
                rank => Err(LoadError::malformed(format!("its scale has {rank} dimensions and no `block_size`"))),
            };
        }
        let block = usize::try_from(block).unwrap_or(0);
        match (dims[axis], scale_dims.get(axis)) {
            (Dim::Fixed(size), Some(Dim::Fixed(count))) if block > 0 && count.checked_mul(block) == Some(size) => {
                let (mut spread, mut scales) = (dims.clone(), scale_dims.clone());
                spread[axis] = Dim::Fixed(*count);
                spread.insert(axis + 1, Dim::Fixed(block));
                scales.insert(axis + 1, Dim::Fixed(1));
                Ok(Blocks { dims, spread, scales })
            }
            _ => Err(LoadError::unsupported(format!(
                "`block_size` {block}: blocks that fill axis {axis}, one scale each, are supported"
            ))),
        }
    }

    /// The scales in FP32 and the zero points, as they meet the tensor.
    fn parameters(&self, node: &mut NodeImport<'_>) -> LoadResult<(ValueId, Option<ValueId>)> {
        let scale = node.value(1)?;
        let scale = node.view(scale, self.scales.clone())?;
        let scale = node.cast(scale, DType::Fp32)?;
        let zero = node.optional(2)?;
        let zero = zero.map(|zero| node.view(zero, self.scales.clone())).transpose()?;
        Ok((scale, zero))
    }
}
