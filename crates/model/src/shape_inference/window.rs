//! Dimensions of convolutions and poolings over `[N, spatial.., C]`, and the check that each pooling window holds a pixel.

use smallvec::SmallVec;

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
    let image = Image::new(input)?;
    let (channels, groups) = (image.channels, conv.groups);
    let (outputs, per_group) = match weight {
        &[Dim::Fixed(outputs), Dim::Fixed(per_group), ..] if weight.len() == input.len() => (outputs, per_group),
        _ => {
            return Err(LoadError::malformed(format!(
                "a weight of shape {} and an input of {} dimensions do not fit together",
                shown(weight),
                input.len()
            )));
        }
    };
    let fits = groups > 0 && outputs.is_multiple_of(groups) && per_group.checked_mul(groups) == Some(channels);
    if !fits {
        return Err(LoadError::malformed(format!(
            "{groups} groups, {channels} input channels and a weight of shape {} do not fit together",
            shown(weight)
        )));
    }
    check_kernel(&conv.window, weight)?;
    Ok(image.with(image.windows(&conv.window)?, outputs))
}

/// Refuses a weight whose axes from the third on are not the window's.
fn check_kernel(window: &Window, weight: &[Dim]) -> LoadResult<()> {
    let kernel = &window.kernel[5 - weight.len()..];
    if kernel.iter().zip(&weight[2..]).all(|(size, dim)| Dim::Fixed(*size) == *dim) {
        return Ok(());
    }
    Err(LoadError::malformed(format!("kernel_shape is {kernel:?}, but the weight has shape {}", shown(weight))))
}

pub(super) fn pool(pool: &Window, input: &[Dim]) -> LoadResult<Dims> {
    let image = Image::new(input)?;
    pool_windows_hold_pixels(pool, image.size)?;
    Ok(image.with(image.windows(pool)?, image.channels))
}

/// The dimensions `[N, spatial.., C]`, seen as those of volumes.
struct Image {
    batch: Dim,
    /// 1 for axes that are not there.
    size: [usize; 3],
    /// How many spatial axes there are.
    axes: usize,
    channels: usize,
}

impl Image {
    fn new(dims: &[Dim]) -> LoadResult<Image> {
        let fixed = |dim: &Dim| match dim {
            Dim::Fixed(size) => Some(*size),
            Dim::Batch => None,
        };
        if let [batch, spatial @ .., Dim::Fixed(channels)] = dims
            && let Some(spatial) = spatial.iter().map(fixed).collect::<Option<SmallVec<[usize; 3]>>>()
            && (1..=3).contains(&spatial.len())
        {
            let mut size = [1; 3];
            size[3 - spatial.len()..].copy_from_slice(&spatial);
            return Ok(Image { batch: *batch, size, axes: spatial.len(), channels: *channels });
        }
        Err(LoadError::unsupported(format!(
            "its input has {} dimensions; sequences, images and volumes, with 3 to 5, are supported",
            dims.len()
        )))
    }

    /// The output's size.
    fn windows(&self, window: &Window) -> LoadResult<[usize; 3]> {
        let Window { kernel, strides, dilations, pads } = window;
        let mut sizes = self.size;
        for (axis, size) in sizes.iter_mut().enumerate() {
            let around = pads.before[axis].saturating_add(pads.after[axis]);
            *size = window_output(*size, around, kernel[axis], strides[axis], dilations[axis])?;
        }
        Ok(sizes)
    }

    fn with(&self, size: [usize; 3], channels: usize) -> Dims {
        let spatial = size[3 - self.axes..].iter().map(|size| Dim::Fixed(*size));
        std::iter::once(self.batch).chain(spatial).chain([Dim::Fixed(channels)]).collect()
    }
}

/// Refuses a pooling some of whose windows over an image of `size` would lie in the padding alone.
pub fn pool_windows_hold_pixels(pool: &Window, size: [usize; 3]) -> LoadResult<()> {
    let Window { kernel, strides, dilations, pads } = pool;
    for axis in 0..3 {
        let (size, before, after) = (size[axis], pads.before[axis], pads.after[axis]);
        let outputs = window_output(size, before.saturating_add(after), kernel[axis], strides[axis], dilations[axis])?;
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
