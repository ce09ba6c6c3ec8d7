//! Dimensions of convolutions and poolings over `[N, H, W, C]`, and the check that each pooling window holds a pixel.

use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::op::{Conv, Window};
use crate::shape_inference::{Dims, shown};

/// The largest kernel size, stride, dilation or padding.
pub const MAX_WINDOW_ATTRIBUTE: usize = 65_535;

/// Output pixels along one axis of `size` pixels with `pads` more around them. Fails when not even one window fits.
pub fn window_output(size: usize, pads: usize, kernel: usize, stride: usize, dilation: usize) -> LoadResult<usize> {
    let reach =
        kernel.checked_sub(1).and_then(|steps| steps.checked_mul(dilation)).and_then(|reach| reach.checked_add(1));
    let room = size.checked_add(pads).zip(reach).and_then(|(padded, reach)| padded.checked_sub(reach));
    match room.zip(room.and_then(|room| room.checked_div(stride))) {
        Some((_, steps)) if dilation > 0 => Ok(steps + 1),
        _ => Err(LoadError::malformed(format!(
            "a window of {kernel} pixels, {dilation} apart, does not fit into {size} pixels with {pads} of padding"
        ))),
    }
}

pub(super) fn conv(conv: &Conv, input: &[Dim], weight: &[Dim]) -> LoadResult<Dims> {
    let (batch, height, width, channels) = image(input)?;
    let &[Dim::Fixed(outputs), Dim::Fixed(per_group), Dim::Fixed(kernel_height), Dim::Fixed(kernel_width)] = weight
    else {
        return Err(LoadError::unsupported(format!(
            "the weight has shape {}; 2-D convolutions, with 4 dimensions, are supported",
            shown(weight)
        )));
    };
    let groups = conv.groups;
    let fits = groups > 0 && outputs.is_multiple_of(groups) && per_group.checked_mul(groups) == Some(channels);
    if !fits {
        return Err(LoadError::malformed(format!(
            "{groups} groups, {channels} input channels and a weight of shape {} do not fit together",
            shown(weight)
        )));
    }
    if [kernel_height, kernel_width] != conv.window.kernel {
        return Err(LoadError::malformed(format!(
            "kernel_shape is {:?}, but the weight has shape {}",
            conv.window.kernel,
            shown(weight)
        )));
    }
    let [height, width] = window(&conv.window, height, width)?;
    Ok([batch, Dim::Fixed(height), Dim::Fixed(width), Dim::Fixed(outputs)].into_iter().collect())
}

pub(super) fn pool(pool: &Window, input: &[Dim]) -> LoadResult<Dims> {
    let (batch, height, width, channels) = image(input)?;
    pool_windows_hold_pixels(pool, height, width)?;
    let [height, width] = window(pool, height, width)?;
    Ok([batch, Dim::Fixed(height), Dim::Fixed(width), Dim::Fixed(channels)].into_iter().collect())
}

fn image(dims: &[Dim]) -> LoadResult<(Dim, usize, usize, usize)> {
    match dims {
        &[batch, Dim::Fixed(height), Dim::Fixed(width), Dim::Fixed(channels)] => Ok((batch, height, width, channels)),
        _ => Err(LoadError::unsupported(format!(
            "its input has {} dimensions; images, with 4, are supported",
            dims.len()
        ))),
    }
}

fn window(window: &Window, height: usize, width: usize) -> LoadResult<[usize; 2]> {
    let Window { kernel, strides, dilations, pads } = window;
    Ok([
        window_output(height, pads.top + pads.bottom, kernel[0], strides[0], dilations[0])?,
        window_output(width, pads.left + pads.right, kernel[1], strides[1], dilations[1])?,
    ])
}

/// Refuses a pooling some of whose windows would lie in the padding alone.
pub fn pool_windows_hold_pixels(pool: &Window, height: usize, width: usize) -> LoadResult<()> {
    let Window { kernel, strides, dilations, pads } = pool;
    for (axis, size, before, after) in [(0, height, pads.top, pads.bottom), (1, width, pads.left, pads.right)] {
        let outputs = window_output(size, before + after, kernel[axis], strides[axis], dilations[axis])?;
        if !axis_holds_pixels(size, before, outputs, kernel[axis], strides[axis], dilations[axis]) {
            return Err(LoadError::unsupported(format!(
                "padding of {before} and {after} around {size} pixels leaves windows of {} pixels without any pixel",
                kernel[axis]
            )));
        }
    }
    Ok(())
}

/// Only windows that begin before the first pixel or after the last can miss the image: at most `before` of the former.
fn axis_holds_pixels(
    size: usize,
    before: usize,
    outputs: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
) -> bool {
    let last_begins = (outputs - 1).saturating_mul(stride);
    if last_begins >= size.saturating_add(before) {
        return false;
    }
    (0..outputs).map(|output| output * stride).take_while(|begin| *begin < before).all(|begin| {
        let missing = before - begin;
        let skipped = missing.div_ceil(dilation);
        skipped < kernel && skipped * dilation - missing < size
    })
}
