//! Dimensions of convolutions and poolings over `[N, spatial.., C]`, and the check that each pooling window holds a pixel.

use smallvec::SmallVec;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::op::{Conv, ConvTranspose, DeformConv, MaxPositions, Window};
use crate::shape_inference::{Dims, is_arithmetic, rows_meet, shown};

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
    check_kernel(conv.window.kernel, weight)?;
    Ok(image.with(image.windows(&conv.window)?, outputs))
}

/// Refuses a weight whose axes from the third on are not the window's.
fn check_kernel(kernel: [usize; 3], weight: &[Dim]) -> LoadResult<()> {
    let kernel = &kernel[5 - weight.len()..];
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

pub(super) fn max_positions(op: &MaxPositions, input: &[Dim]) -> LoadResult<Dims> {
    match input.first() {
        Some(Dim::Batch) => Err(rows_meet("positions of largest elements are counted through all rows")),
        _ => pool(&op.window, input),
    }
}

pub(super) fn conv_transpose(conv: &ConvTranspose, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let [input, weight] = inputs else { return Err(wrong_count(inputs.len(), 2, 2)) };
    check_floats(inputs)?;
    let image = Image::new(&input.dims)?;
    let shape = shown(&weight.dims);
    let &[Dim::Fixed(channels), Dim::Fixed(per_group), ..] = &weight.dims[..] else {
        return Err(LoadError::malformed(format!("its weight has shape {shape}")));
    };
    let fits = weight.dims.len() == input.dims.len()
        && channels == image.channels
        && conv.groups > 0
        && channels.is_multiple_of(conv.groups);
    if !fits {
        return Err(LoadError::malformed(format!(
            "{} groups, an input of {} with channels last and a weight of shape {shape} do not fit together",
            conv.groups,
            shown(&input.dims)
        )));
    }
    check_kernel(conv.kernel, &weight.dims)?;
    let outputs = per_group.checked_mul(conv.groups).ok_or_else(|| LoadError::limit("it has too many channels"))?;
    Ok(TensorType { dtype: input.dtype, dims: image.with(conv.output, outputs) })
}

pub(super) fn deform_conv(op: &DeformConv, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let ([image, weight, offsets] | [image, weight, offsets, _]) = inputs else {
        return Err(wrong_count(inputs.len(), 3, 4));
    };
    check_floats(inputs)?;
    let plain = Conv { window: op.window, groups: op.groups };
    let dims = conv(&plain, &image.dims, &weight.dims)?;
    let channels = Image::new(&image.dims)?.channels;
    if image.dims.len() != 4 || op.offset_groups == 0 || !channels.is_multiple_of(op.offset_groups) {
        return Err(LoadError::unsupported(format!(
            "{} offset groups of {channels} channels in {} dimensions; whole groups of flat images, with 4, are supported",
            op.offset_groups,
            image.dims.len()
        )));
    }
    let taps: usize = op.window.kernel.iter().product::<usize>().saturating_mul(op.offset_groups);
    for (input, values) in [Some(*offsets), inputs.get(3).copied()].into_iter().flatten().zip([2, 1]) {
        let expected: Dims = dims[..3].iter().copied().chain([Dim::Fixed(taps.saturating_mul(values))]).collect();
        if input.dims != expected {
            return Err(LoadError::malformed(format!(
                "offsets or a mask of {} with channels last, expected {}",
                shown(&input.dims),
                shown(&expected)
            )));
        }
    }
    Ok(TensorType { dtype: image.dtype, dims })
}

fn wrong_count(found: usize, least: usize, most: usize) -> LoadError {
    LoadError::malformed(format!("it has {found} inputs, expected {least} to {most}"))
}

fn check_floats(inputs: &[&TensorType]) -> LoadResult<()> {
    let first = inputs[0].dtype;
    if !is_arithmetic(first) {
        return Err(LoadError::unsupported(format!("input 0 has type {first}, FP32 and FP16 are supported")));
    }
    match inputs.iter().find(|input| input.dtype != first) {
        None => Ok(()),
        Some(other) => Err(LoadError::malformed(format!("inputs of types {first} and {}", other.dtype))),
    }
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
