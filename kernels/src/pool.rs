//! Largest, mean and norm of the elements of windows that slide over images, and where the largest lies. Padding is never
//! the largest element and adds nothing to a sum. An output pixel is a row, so any range of rows can be computed alone.

use std::ops::Range;

use crate::float::{Element, Floats, FloatsMut, same_float_type};
use crate::isa::{Instructions, Isa, Kernel};
use crate::window::{Pixel, Window};

/// What becomes of a window's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The largest; NaN if one of them is NaN.
    Max,
    /// The sum, line by line, divided by a number of taps.
    Average(Divisor),
    /// The `p`-th root of the sum of the `p`-th powers of the magnitudes.
    Norm {
        /// At least 1.
        p: i32,
    },
}

/// Which taps of a window count in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Divisor {
    /// Those inside the image.
    Inside,
    /// Those in the image with the window's padding in front and this much behind it.
    Padded {
        /// Padding behind the last pixel along each axis.
        after: [usize; 3],
    },
}

/// Channels that are pooled at a time.
const BLOCK: usize = 64;

/// Computes the output pixels `rows` (counted through all images) of pooling `input`, a whole batch of `channels` channels,
/// into `out`, which is those pixels alone. Every window holds at least one pixel of the image.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn pool(
    isa: Isa,
    pooling: Pooling,
    window: &Window,
    channels: usize,
    rows: Range<usize>,
    input: Floats<'_>,
    out: FloatsMut<'_>,
) {
    assert_eq!(out.len(), rows.len() * channels, "the output is the pixels that are computed");
    same_float_type!(input, out, |input, out| isa.run(Pool { pooling, window, channels, rows, input, out }));
}

struct Pool<'a, E> {
    pooling: Pooling,
    window: &'a Window,
    channels: usize,
    rows: Range<usize>,
    input: &'a [E],
    out: &'a mut [E],
}

impl<E: Element> Kernel for Pool<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let mut pixel = self.window.pixel(self.rows.start);
        for row in 0..self.rows.len() {
            for first in (0..self.channels).step_by(BLOCK) {
                let channels = first..(first + BLOCK).min(self.channels);
                let mut block = [0.0; BLOCK];
                let block = &mut block[..channels.len()];
                self.gather(isa, pixel, channels, block);
                let at = row * self.channels + first;
                E::narrow(isa, block, &mut self.out[at..at + block.len()]);
            }
            pixel = self.window.next(pixel);
        }
    }
}

impl<E: Element> Pool<'_, E> {
    #[inline(always)]
    fn gather<I: Instructions>(&self, isa: I, pixel: Pixel, channels: Range<usize>, block: &mut [f32]) {
        let window = self.window;
        let inside: [Range<usize>; 3] = std::array::from_fn(|axis| window.inside(axis, pixel.at[axis]));
        if matches!(self.pooling, Pooling::Max) {
            block.fill(f32::NEG_INFINITY);
        }
        for kz in inside[0].clone() {
            for ky in inside[1].clone() {
                let (z, y) = (window.position(0, pixel.at[0], kz), window.position(1, pixel.at[1], ky));
                let line = window.input_pixel(pixel.image, [z, y, 0]);
                for kx in inside[2].clone() {
                    let at = (line + window.position(2, pixel.at[2], kx)) * self.channels + channels.start;
                    let mut buffer = [0.0; BLOCK];
                    let wide = E::read(isa, &self.input[at..at + block.len()], &mut buffer);
                    match self.pooling {
                        Pooling::Max => larger(block, wide),
                        Pooling::Average(_) => add(block, wide),
                        Pooling::Norm { p } => add_powers(p, block, wide),
                    }
                }
            }
        }
        match self.pooling {
            Pooling::Max => {}
            Pooling::Average(divisor) => {
                let count = divisor.taps(window, pixel, &inside);
                for sum in block {
                    *sum /= count as f32;
                }
            }
            Pooling::Norm { p } => roots(p, block),
        }
    }
}

impl Divisor {
    fn taps(self, window: &Window, pixel: Pixel, inside: &[Range<usize>; 3]) -> usize {
        let along = |axis: usize| match self {
            Divisor::Inside => inside[axis].len(),
            Divisor::Padded { after } => {
                let end = window.pads[axis] + window.input[axis] + after[axis];
                let room = end.saturating_sub(pixel.at[axis] * window.strides[axis]);
                room.div_ceil(window.dilations[axis]).min(window.kernel[axis])
            }
        };
        (0..3).map(along).product()
    }
}

#[inline(always)]
fn larger(block: &mut [f32], values: &[f32]) {
    for (largest, x) in block.iter_mut().zip(values) {
        *largest = if *x > *largest || x.is_nan() { *x } else { *largest };
    }
}

#[inline(always)]
fn add(block: &mut [f32], values: &[f32]) {
    for (sum, x) in block.iter_mut().zip(values) {
        *sum += x;
    }
}

#[inline(always)]
fn add_powers(p: i32, block: &mut [f32], values: &[f32]) {
    for (sum, x) in block.iter_mut().zip(values) {
        *sum += match p {
            1 => x.abs(),
            2 => x * x,
            p => x.abs().powi(p),
        };
    }
}

#[inline(always)]
fn roots(p: i32, block: &mut [f32]) {
    for sum in block {
        *sum = match p {
            1 => *sum,
            2 => sum.sqrt(),
            p => f64::from(*sum).powf(1.0 / f64::from(p)) as f32,
        };
    }
}

/// In which order the pixels of an image are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PixelOrder {
    /// The last axis fastest.
    RowMajor,
    /// The first axis fastest.
    ColumnMajor,
}

impl PixelOrder {
    fn index(self, size: [usize; 3], at: [usize; 3]) -> usize {
        match self {
            PixelOrder::RowMajor => (at[0] * size[1] + at[1]) * size[2] + at[2],
            PixelOrder::ColumnMajor => (at[2] * size[1] + at[1]) * size[0] + at[0],
        }
    }
}

/// Where the largest element of each window lies, for the output pixels `rows`: counted image by image, channel by channel
/// and pixel by pixel in `order`. The first of equals; NaN is the largest. `input` and `out` are whole batches.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn max_positions(
    window: &Window,
    order: PixelOrder,
    channels: usize,
    rows: Range<usize>,
    input: Floats<'_>,
    out: &mut [i64],
) {
    for row in rows {
        let pixel = window.pixel(row);
        for channel in 0..channels {
            let at = largest(window, channels, pixel, channel, input);
            let image = (pixel.image * channels + channel) * window.input_pixels();
            out[row * channels + channel] = (image + order.index(window.input, at)) as i64;
        }
    }
}

fn largest(window: &Window, channels: usize, pixel: Pixel, channel: usize, input: Floats<'_>) -> [usize; 3] {
    let (mut largest, mut found) = (f32::NEG_INFINITY, None);
    for kz in window.inside(0, pixel.at[0]) {
        for ky in window.inside(1, pixel.at[1]) {
            for kx in window.inside(2, pixel.at[2]) {
                let taps = [kz, ky, kx];
                let at = std::array::from_fn(|axis| window.position(axis, pixel.at[axis], taps[axis]));
                let x = input.get(window.input_pixel(pixel.image, at) * channels + channel);
                if found.is_none() || x > largest || (x.is_nan() && !largest.is_nan()) {
                    (largest, found) = (x, Some(at));
                }
            }
        }
    }
    found.unwrap_or_default()
}
