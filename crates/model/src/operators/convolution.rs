//! Conv, ConvTranspose and DeformConv, with one to three spatial axes and groups. ONNX's images have channels second, the graph's have them last.

use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{BinaryOp, Conv, ConvTranspose, DeformConv, Op};
use crate::operators::window_attributes::{Padding, Spatial, halves, padding, triple, window};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::shown;

pub(super) fn conv(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, weight, bias) = (node.value(0)?, node.value(1)?, node.optional(2)?);
    let spatial = Spatial::of(node, input)?;
    let kernel = spatial.weight_kernel(node, weight)?;
    let groups = groups(node, "group")?;
    let window = window(node, spatial, Some(kernel), true)?;
    let image = node.channels_last(input)?;
    let output = node.compute(Op::Conv(Conv { window, groups }), &[image, weight])?;
    with_bias(node, output, bias)
}

pub(super) fn conv_transpose(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, weight, bias) = (node.value(0)?, node.value(1)?, node.optional(2)?);
    let spatial = Spatial::of(node, input)?;
    let weight_kernel = spatial.weight_kernel(node, weight)?;
    let groups = groups(node, "group")?;
    let kernel = triple(node, spatial, "kernel_shape", 1, 1)?.unwrap_or(weight_kernel);
    let strides = triple(node, spatial, "strides", 1, 1)?.unwrap_or([1; 3]);
    let dilations = triple(node, spatial, "dilations", 1, 1)?.unwrap_or([1; 3]);
    let more = triple(node, spatial, "output_padding", 0, 0)?.unwrap_or([0; 3]);
    let asked = triple(node, spatial, "output_shape", 1, 1)?;
    let (mut pads, mut output) = ([0; 3], [1; 3]);
    let padding = padding(node, spatial)?;
    for axis in 0..3 {
        let reach = spatial.size[axis].saturating_sub(1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
        let whole = reach + more[axis];
        let target = match (asked, padding) {
            (Some(asked), _) => Some(asked[axis]),
            (None, Padding::Same { .. }) => Some(spatial.size[axis] * strides[axis]),
            (None, Padding::Explicit(_)) => None,
        };
        (pads[axis], output[axis]) = match (target, padding) {
            (Some(target), padding) => {
                let lower = padding != Padding::Same { lower: false };
                (halves(whole.saturating_sub(target), lower).0, target)
            }
            (None, Padding::Explicit(pads)) => {
                let around = pads.before[axis] + pads.after[axis];
                let output = whole.checked_sub(around).filter(|output| *output > 0).ok_or_else(|| {
                    LoadError::malformed(format!("padding of {around} leaves nothing of {whole} output pixels"))
                })?;
                (pads.before[axis], output)
            }
            (None, Padding::Same { .. }) => (0, whole),
        };
    }
    let image = node.channels_last(input)?;
    let op = ConvTranspose { kernel, strides, dilations, pads, output, groups };
    let output = node.compute(Op::ConvTranspose(op), &[image, weight])?;
    with_bias(node, output, bias)
}

pub(super) fn deform_conv(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, weight, offsets) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let (bias, mask) = (node.optional(3)?, node.optional(4)?);
    let spatial = Spatial::of(node, input)?;
    let kernel = spatial.weight_kernel(node, weight)?;
    let (group_count, offset_groups) = (groups(node, "group")?, groups(node, "offset_group")?);
    let window = window(node, spatial, Some(kernel), true)?;
    let mut inputs = vec![node.channels_last(input)?, weight, node.channels_last(offsets)?];
    if let Some(mask) = mask {
        inputs.push(node.channels_last(mask)?);
    }
    let output = node.compute(Op::DeformConv(DeformConv { window, groups: group_count, offset_groups }), &inputs)?;
    with_bias(node, output, bias)
}

fn groups(node: &NodeImport<'_>, name: &'static str) -> LoadResult<usize> {
    let groups = node.attributes.int(name)?.unwrap_or(1);
    usize::try_from(groups).map_err(|_| LoadError::malformed(format!("attribute `{name}` is {groups}")))
}

/// Adds a bias, one value a channel, to an output with channels last, and moves these second.
fn with_bias(node: &mut NodeImport<'_>, mut output: ValueId, bias: Option<ValueId>) -> LoadResult<Item> {
    if let Some(bias) = bias {
        if node.rank(bias) != 1 || node.dims(bias).last() != node.dims(output).last() {
            let shape = shown(&node.dims(bias));
            return Err(LoadError::malformed(format!(
                "the bias has shape {shape}, expected one value an output channel"
            )));
        }
        output = node.compute(Op::Binary(BinaryOp::Add), &[output, bias])?;
    }
    node.channels_second(output).map(Item::Value)
}
