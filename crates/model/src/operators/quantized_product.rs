//! MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv: products of small integers, exactly in INT32, with their zero
//! points taken off before and scales applied after.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::elementwise::{BinaryOp, Elementwise, Function};
use crate::op::{Conv, Op};
use crate::operators::window_attributes::{Spatial, window};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, shown};

pub(super) fn matmul_integer(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (left, right) = (centred(node, 0, 2, ZeroPoint::Rows)?, centred(node, 1, 3, ZeroPoint::Columns)?);
    node.compute(Op::MatMul, &[left, right]).map(Item::Value)
}

pub(super) fn conv_integer(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (image, weight) = (centred(node, 0, 2, ZeroPoint::One)?, centred(node, 1, 3, ZeroPoint::Filters)?);
    let output = convolution(node, image, weight)?;
    node.channels_second(output).map(Item::Value)
}

/// A, its scale and zero point, B, its scale and zero point, and those of the result.
pub(super) fn qlinear_matmul(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (left, right) = (centred(node, 0, 2, ZeroPoint::Rows)?, centred(node, 3, 5, ZeroPoint::Columns)?);
    let sums = node.compute(Op::MatMul, &[left, right])?;
    let left_scale = scale(node, 1, ZeroPoint::Rows, node.rank(left))?;
    let right_scale = scale(node, 4, ZeroPoint::Columns, node.rank(right))?;
    let result_scale = scale(node, 6, ZeroPoint::Rows, node.rank(sums))?;
    requantized(node, sums, [left_scale, right_scale, result_scale], 7).map(Item::Value)
}

/// The image, its scale and zero point, the weight, its scale and zero point, those of the result, and a bias.
pub(super) fn qlinear_conv(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (image, weight) = (centred(node, 0, 2, ZeroPoint::One)?, centred(node, 3, 5, ZeroPoint::Filters)?);
    let mut sums = convolution(node, image, weight)?;
    if let Some(bias) = node.optional(8)? {
        sums = node.compute(Op::Binary(BinaryOp::Add), &[sums, bias])?;
    }
    // channels are last, so one scale a filter lies along the last axis as it is
    let scales = [1, 4, 6].map(|index| scale(node, index, ZeroPoint::One, 1));
    let [image_scale, weight_scale, result_scale] = scales;
    let output = requantized(node, sums, [image_scale?, weight_scale?, result_scale?], 7)?;
    node.channels_second(output).map(Item::Value)
}

/// How a zero point or scale with several elements lies along its tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ZeroPoint {
    /// As numpy broadcasts it; usually it is one for all.
    One,
    /// One a row, the last axis but one.
    Rows,
    /// One a column, the last axis.
    Columns,
    /// One a filter, the first axis.
    Filters,
}

impl ZeroPoint {
    /// A vector's dimensions for a tensor of `rank`; what is no vector keeps its own.
    fn dims(self, dims: Dims, rank: usize) -> Dims {
        let behind = match (self, dims.len()) {
            (ZeroPoint::Rows, 1) if rank > 1 => 1,
            (ZeroPoint::Filters, 1) => rank.saturating_sub(1),
            _ => 0,
        };
        dims.into_iter().chain(std::iter::repeat_n(Dim::Fixed(1), behind)).collect()
    }
}

/// Input `index` in INT32, less the zero point that input `zero_point` may be.
fn centred(node: &mut NodeImport<'_>, index: usize, zero_point: usize, lies: ZeroPoint) -> LoadResult<ValueId> {
    let input = node.value(index)?;
    let dtype = node.tensor(input).dtype;
    if !matches!(dtype, DType::Uint8 | DType::Int8) {
        return Err(LoadError::unsupported(format!("input {index} has type {dtype}, INT8 and UINT8 are supported")));
    }
    let wide = node.compute(Op::Cast { to: DType::Int32 }, &[input])?;
    let Some(zero_point) = node.optional(zero_point)? else { return Ok(wide) };
    let zero_point = node.compute(Op::Cast { to: DType::Int32 }, &[zero_point])?;
    let dims = lies.dims(node.dims(zero_point), node.rank(wide));
    let zero_point = node.view(zero_point, dims)?;
    node.compute(Op::Binary(BinaryOp::Sub), &[wide, zero_point])
}

/// Input `index`, a scale of a tensor of `rank`, in FP32.
fn scale(node: &mut NodeImport<'_>, index: usize, lies: ZeroPoint, rank: usize) -> LoadResult<ValueId> {
    let scale = node.value(index)?;
    let scale = match node.tensor(scale).dtype {
        DType::Fp32 => scale,
        _ => node.compute(Op::Cast { to: DType::Fp32 }, &[scale])?,
    };
    let dims = lies.dims(node.dims(scale), rank);
    node.view(scale, dims)
}

/// `[N, spatial.., M]` of an image with channels second.
fn convolution(node: &mut NodeImport<'_>, image: ValueId, weight: ValueId) -> LoadResult<ValueId> {
    let spatial = Spatial::of(node, image)?;
    let kernel = spatial.weight_kernel(node, weight)?;
    let groups = node.attributes.int("group")?.unwrap_or(1);
    let groups = usize::try_from(groups).map_err(|_| LoadError::malformed(format!("attribute `group` is {groups}")))?;
    let window = window(node, spatial, Some(kernel), true)?;
    let image = node.channels_last(image)?;
    node.compute(Op::Conv(Conv { window, groups }), &[image, weight])
}

/// `sums` times both operands' scales by the result's, rounded, with the result's zero point, input `zero_point`, whose type
/// it gets; what that type cannot hold becomes its nearest value.
fn requantized(
    node: &mut NodeImport<'_>,
    sums: ValueId,
    [left, right, result]: [ValueId; 3],
    zero_point: usize,
) -> LoadResult<ValueId> {
    let zero_point = node.value(zero_point)?;
    let dtype = node.tensor(zero_point).dtype;
    let (least, most) = match dtype {
        DType::Uint8 => (0.0, 255.0),
        DType::Int8 => (-128.0, 127.0),
        other => {
            let shape = shown(&node.dims(zero_point));
            return Err(LoadError::unsupported(format!("a result of {other} {shape}, INT8 and UINT8 are supported")));
        }
    };
    let mut binary = |op, left, right| node.compute(Op::Binary(op), &[left, right]);
    let product = binary(BinaryOp::Mul, left, right)?;
    let factor = binary(BinaryOp::Div, product, result)?;
    let sums = node.compute(Op::Cast { to: DType::Fp32 }, &[sums])?;
    let scaled = node.compute(Op::Binary(BinaryOp::Mul), &[sums, factor])?;
    let rounded = node.compute(Op::Elementwise(Elementwise::Function(Function::Round)), &[scaled])?;
    let zero_point = node.compute(Op::Cast { to: DType::Fp32 }, &[zero_point])?;
    let moved = node.compute(Op::Binary(BinaryOp::Add), &[rounded, zero_point])?;
    let clip = crate::op::elementwise::Activation::Clip { min: least, max: most };
    let clipped = node.compute(Op::Activation(clip), &[moved])?;
    node.compute(Op::Cast { to: dtype }, &[clipped])
}
