//! Largest and mean element of windows that slide over NHWC images. Padding is never the largest element and adds nothing
//! to a sum. An output pixel is a row, so any range of rows can be computed alone.

use std::ops::Range;

use crate::float::{Element, Floats, FloatsMut, same_float_type};
use crate::isa::{Instructions, Isa, Kernel};
use crate::window::{Pixel, Window};

/// What becomes of a window's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The largest; NaN if one of them is NaN.
    Max,
    /// The sum, row by row, divided by the number of taps: all of them, or those inside the image.
    Average {
        /// Whether taps on padding count.
        count_include_pad: bool,
    },
}

/// Channels that are pooled at a time.
const BLOCK: usize = 64;

/// Computes the output pixels `rows` (counted through all images) of pooling `input`, whole NHWC batches of `channels`
/// channels, into `out`. Every window holds at least one pixel of the image.
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
        for row in self.rows.clone() {
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
        let (inside_y, inside_x) = (window.inside(0, pixel.y), window.inside(1, pixel.x));
        let inside = inside_y.len() * inside_x.len();
        if matches!(self.pooling, Pooling::Max) {
            block.fill(f32::NEG_INFINITY);
        }
        for ky in inside_y {
            let line = (pixel.image * window.input[0] + window.position(0, pixel.y, ky)) * window.input[1];
            for kx in inside_x.clone() {
                let at = (line + window.position(1, pixel.x, kx)) * self.channels + channels.start;
                let mut buffer = [0.0; BLOCK];
                let wide = E::read(isa, &self.input[at..at + block.len()], &mut buffer);
                match self.pooling {
                    Pooling::Max => larger(block, wide),
                    Pooling::Average { .. } => add(block, wide),
                }
            }
        }
        if let Pooling::Average { count_include_pad } = self.pooling {
            let count = if count_include_pad { window.taps() } else { inside };
            for sum in block {
                *sum /= count as f32;
            }
        }
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
