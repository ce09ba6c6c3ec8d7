//! CausalConvWithState: each channel of a sequence convolved with what came before it, made of a joint, a depthwise
//! convolution and a slice.

use insula_core::Shape;
use smallvec::smallvec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::elementwise::{Activation, BinaryOp};
use crate::op::movement::{AxisSlice, Movement, Pad, PadMode};
use crate::op::{Conv, Op, Pads, Window};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{MAX_WINDOW_ATTRIBUTE, shown};

pub(super) fn causal_conv_with_state(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, weight) = (node.value(0)?, node.value(1)?);
    let (bias, past) = (node.optional(2)?, node.optional(3)?);
    let (&[_, Dim::Fixed(channels), Dim::Fixed(length)], &[_, _, Dim::Fixed(kernel)]) =
        (&node.dims(input)[..], &node.dims(weight)[..])
    else {
        let (input, weight) = (shown(&node.dims(input)), shown(&node.dims(weight)));
        return Err(LoadError::malformed(format!("inputs of {input} and {weight}, expected 3 dimensions")));
    };
    if kernel > MAX_WINDOW_ATTRIBUTE {
        return Err(LoadError::limit(format!("a kernel of {kernel} positions is too large")));
    }
    let carried = kernel.saturating_sub(1);
    let whole = match past {
        _ if carried == 0 => input,
        Some(past) => node.compute(Op::Move(Movement::Concat { axis: 2 }), &[past, input])?,
        None => padded(node, input, carried)?,
    };
    let window = Window { kernel: [1, 1, kernel], strides: [1; 3], dilations: [1; 3], pads: Pads::default() };
    let moved = node.channels_last(whole)?;
    let mut output = node.compute(Op::Conv(Conv { window, groups: channels }), &[moved, weight])?;
    if let Some(bias) = bias {
        output = node.compute(Op::Binary(BinaryOp::Add), &[output, bias])?;
    }
    output = match node.attributes.text("activation")?.unwrap_or("none") {
        "none" => output,
        "silu" | "swish" => node.compute(Op::Activation(Activation::Swish { alpha: 1.0 }), &[output])?,
        _ => return Err(LoadError::malformed("attribute `activation` must be none, silu or swish")),
    };
    if node.wants(1) {
        let present = last(node, whole, length, carried)?;
        node.more_outputs.push(Item::Value(present));
    }
    node.channels_second(output).map(Item::Value)
}

/// Zeros in front of a sequence.
fn padded(node: &mut NodeImport<'_>, input: ValueId, before: usize) -> LoadResult<ValueId> {
    let dtype = node.tensor(input).dtype;
    let zero = node.scalar_constant(dtype, 0.0)?;
    let pad = Pad { before: smallvec![0, 0, before], after: smallvec![0, 0, 0], mode: PadMode::Constant };
    node.compute(Op::Move(Movement::Pad(pad)), &[input, zero])
}

/// The last `size` positions from `start` on; none of them is an empty constant.
fn last(node: &mut NodeImport<'_>, whole: ValueId, start: usize, size: usize) -> LoadResult<ValueId> {
    if size > 0 {
        return node
            .compute(Op::Move(Movement::Slice(smallvec![AxisSlice { axis: 2, start, step: 1, size }])), &[whole]);
    }
    let dims = node.dims(whole);
    let fixed = |dim: &Dim| {
        if let Dim::Fixed(size) = dim {
            Ok(*size)
        } else {
            Err(crate::shape_inference::rows_meet("an empty state has none"))
        }
    };
    let shape = Shape::new(&[fixed(&dims[0])?, fixed(&dims[1])?, 0])?;
    let empty = Constant::of_f32(node.tensor(whole).dtype, shape, &[])?;
    node.graph.add_constant(node.name.clone(), empty)
}
