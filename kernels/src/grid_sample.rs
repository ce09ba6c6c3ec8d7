//! Samples images at positions that a grid names, between pixels by interpolation. Images are channels last with any number of
//! spatial axes. An output pixel depends on its own image and grid position alone.

use std::ops::Range;

use crate::float::{CHUNK, Element, Floats, FloatsMut, same_float_type};
use crate::interpolate::add_weighted;
use crate::isa::{Instructions, Isa, Kernel};

/// The most spatial axes.
pub const MAX_SPATIAL: usize = 6;

/// How values between pixels are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// The nearest pixel; of two equally near ones that with the even position.
    Nearest,
    /// From the two pixels around along each axis.
    Linear,
    /// From the four pixels around along each axis, by cubic convolution with -0.75.
    Cubic,
}

/// What lies outside the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Border {
    /// Zeros.
    Zeros,
    /// The nearest pixel of the border.
    Edge,
    /// The image, mirrored at the border again and again.
    Reflection,
}

/// A sampling of images of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridSample {
    /// Sizes of the spatial axes, at most [`MAX_SPATIAL`], each at least 1.
    pub image: Vec<usize>,
    /// Channels.
    pub channels: usize,
    /// Output pixels of an image.
    pub pixels: usize,
    /// Between pixels.
    pub sampling: Sampling,
    /// Outside.
    pub border: Border,
    /// Whether -1 and 1 are the centres of the corner pixels instead of their outer edges.
    pub align_corners: bool,
}

/// The pixels along an axis that make a sample, with their weights; `None` is outside.
type AxisTaps = ([(Option<usize>, f32); 4], usize);

impl GridSample {
    /// Computes the output pixels `rows`, counted through all images, of `out`, seen as `[images, pixels, channels]`. `grid` holds
    /// a position for each, the last spatial axis first, in -1..1 of each axis. All tensors are whole.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, isa: Isa, rows: Range<usize>, input: Floats<'_>, grid: Floats<'_>, out: FloatsMut<'_>) {
        same_float_type!(input, out, |input, out| isa.run(Sample { geometry: self, rows, input, grid, out }));
    }

    fn taps(&self, axis: usize, normalised: f32) -> AxisTaps {
        let size = self.image[axis];
        let length = size as f32;
        let (low, high) = if self.align_corners { (0.0, length - 1.0) } else { (-0.5, length - 0.5) };
        let mut x = match self.align_corners {
            true => (normalised + 1.0) / 2.0 * (length - 1.0),
            false => ((normalised + 1.0) * length - 1.0) / 2.0,
        };
        if self.sampling == Sampling::Nearest {
            x = x.round_ties_even();
        }
        if x < low || x > high {
            x = match self.border {
                Border::Zeros => x,
                Border::Edge => x.clamp(0.0, length - 1.0),
                Border::Reflection => reflected(x, low, high),
            };
        }
        let first = x.floor();
        let (weights, count, before) = match self.sampling {
            Sampling::Nearest => ([1.0, 0.0, 0.0, 0.0], 1, 0.0),
            Sampling::Linear => ([1.0 - (x - first), x - first, 0.0, 0.0], 2, 0.0),
            Sampling::Cubic => (cubic(x - first), 4, 1.0),
        };
        let tap = |k: usize| (self.pixel(first - before + k as f32, size, low, high), weights[k]);
        (std::array::from_fn(tap), count)
    }

    fn pixel(&self, at: f32, size: usize, low: f32, high: f32) -> Option<usize> {
        let inside = at >= 0.0 && at < size as f32;
        match self.border {
            _ if inside => Some(at as usize),
            Border::Zeros => None,
            Border::Edge => Some((at.max(0.0) as usize).min(size - 1)),
            Border::Reflection => Some((reflected(at, low, high).max(0.0) as usize).min(size - 1)),
        }
    }
}

/// `x` mirrored at `low` and `high` until it lies between them.
fn reflected(x: f32, low: f32, high: f32) -> f32 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let beyond = if x < low { low - x } else { x - high };
    let turns = (beyond / range).floor();
    let rest = beyond - turns * range;
    let even = turns % 2.0 == 0.0;
    if (x < low) == even { low + rest } else { high - rest }
}

/// Keys' cubic convolution: the weights of the four pixels around `x` in 0..1 behind the second.
fn cubic(x: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(x + 1.0), near(x), near(1.0 - x), far(2.0 - x)]
}

struct Sample<'a, E> {
    geometry: &'a GridSample,
    rows: Range<usize>,
    input: &'a [E],
    grid: Floats<'a>,
    out: &'a mut [E],
}

impl<E: Element> Kernel for Sample<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let GridSample { image, channels, pixels, .. } = self.geometry;
        let (axes, channels) = (image.len(), *channels);
        for row in self.rows {
            let mut taps: [AxisTaps; MAX_SPATIAL] = [([(None, 0.0); 4], 0); MAX_SPATIAL];
            for (axis, taps) in taps[..axes].iter_mut().enumerate() {
                *taps = self.geometry.taps(axis, self.grid.get(row * axes + axes - 1 - axis));
            }
            let combinations: usize = taps[..axes].iter().map(|(_, count)| count).product();
            let first_pixel = row / pixels * image.iter().product::<usize>();
            for first in (0..channels).step_by(CHUNK) {
                let length = CHUNK.min(channels - first);
                let mut sums = [0.0; CHUNK];
                let sums = &mut sums[..length];
                for combination in 0..combinations {
                    let Some((pixel, weight)) = combined(&taps[..axes], image, combination) else { continue };
                    let at = (first_pixel + pixel) * channels + first;
                    add_weighted(isa, sums, weight, &self.input[at..at + length]);
                }
                let to = row * channels + first;
                E::narrow(isa, sums, &mut self.out[to..to + length]);
            }
        }
    }
}

/// The pixel and the weight of one choice of a tap for each axis; `None` when it lies outside.
#[inline(always)]
fn combined(taps: &[AxisTaps], image: &[usize], mut combination: usize) -> Option<(usize, f32)> {
    let (mut pixel, mut weight, mut stride) = (0, 1.0, 1);
    for ((taps, count), size) in taps.iter().zip(image).rev() {
        let (position, factor) = taps[combination % count];
        combination /= count;
        pixel += position? * stride;
        weight *= factor;
        stride *= size;
    }
    Some((pixel, weight))
}
