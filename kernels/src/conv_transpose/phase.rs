//! The phases of a transposed convolution: output pixels that are a stride apart see the same taps. It is arithmetic of
//! positions and the gathering of the input pixels that meet a phase's taps; it never multiplies.

use std::ops::Range;

use super::ConvTransposeShape;
use crate::float::{Element, Floats};
use crate::gemm::RowSource;
use crate::isa::{Instructions, Isa, Kernel};
use crate::window::Window;

/// Output pixels `first + i * stride` along each axis, and their taps `first_tap + i * tap_step`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    first: [usize; 3],
    /// How many output pixels along each axis.
    pixels: [usize; 3],
    first_tap: [usize; 3],
    tap_step: [usize; 3],
    /// How many taps along each axis; zero where only the bias reaches the pixels.
    taps: [usize; 3],
}

/// Every phase of a transposed convolution with this window.
pub(super) fn phases(window: &Window) -> impl Iterator<Item = Phase> {
    let window = *window;
    let count: [usize; 3] = std::array::from_fn(|axis| window.strides[axis].min(window.input[axis]));
    (0..count.iter().product()).map(move |index: usize| {
        let first = [index / count[2] / count[1], index / count[2] % count[1], index % count[2]];
        Phase::new(&window, first)
    })
}

impl Phase {
    fn new(window: &Window, first: [usize; 3]) -> Phase {
        let (mut first_tap, mut tap_step, mut taps) = ([0; 3], [1; 3], [0; 3]);
        for axis in 0..3 {
            let (stride, dilation) = (window.strides[axis], window.dilations[axis]);
            let meets = |tap: &usize| (tap * dilation) % stride == (first[axis] + window.pads[axis]) % stride;
            let mut found = (0..window.kernel[axis]).filter(meets);
            if let Some(tap) = found.next() {
                first_tap[axis] = tap;
                let next = found.next();
                tap_step[axis] = next.map_or(1, |next| next - tap);
                taps[axis] = 1 + usize::from(next.is_some()) + found.count();
            }
        }
        let pixels = std::array::from_fn(|axis| (window.input[axis] - first[axis]).div_ceil(window.strides[axis]));
        Phase { first, pixels, first_tap, tap_step, taps }
    }

    pub(super) fn taps(&self) -> usize {
        self.taps.iter().product()
    }

    pub(super) fn rows(&self, images: usize) -> usize {
        images * self.pixels.iter().product::<usize>()
    }

    /// Where the phase's tap number `index` is along each axis.
    fn tap_position(&self, index: usize) -> [usize; 3] {
        let [_, height, width] = self.taps;
        let index = [index / width / height, index / width % height, index % width];
        std::array::from_fn(|axis| self.first_tap[axis] + index[axis] * self.tap_step[axis])
    }

    /// The number in the whole window of the phase's tap number `index`.
    pub(super) fn tap(&self, window: &Window, index: usize) -> usize {
        let [z, y, x] = self.tap_position(index);
        (z * window.kernel[1] + y) * window.kernel[2] + x
    }

    /// The image and the position in it of the phase's output pixel number `row`.
    pub(super) fn pixel(&self, window: &Window, row: usize) -> (usize, [usize; 3]) {
        let [depth, height, width] = self.pixels;
        let (line, x) = (row / width, row % width);
        let (plane, y) = (line / height, line % height);
        let index = [plane % depth, y, x];
        (plane / depth, std::array::from_fn(|axis| self.first[axis] + index[axis] * window.strides[axis]))
    }
}

/// The rows of one group of a phase: row `r` is output pixel `first_row + r`, column `tap * group channels + c` its input.
pub(super) struct PhaseRows<'a> {
    pub isa: Isa,
    pub shape: &'a ConvTransposeShape,
    pub phase: &'a Phase,
    pub channels: Range<usize>,
    pub first_row: usize,
    pub input: Floats<'a>,
}

impl RowSource for PhaseRows<'_> {
    fn pack(&self, rows: Range<usize>, depth: Range<usize>, to: &mut [f32], stride: usize) {
        match self.input {
            Floats::F16(input) => self.isa.run(Gather { source: self, input, rows, depth, to, stride }),
            Floats::F32(input) => self.isa.run(Gather { source: self, input, rows, depth, to, stride }),
        }
    }
}

struct Gather<'a, E> {
    source: &'a PhaseRows<'a>,
    input: &'a [E],
    rows: Range<usize>,
    depth: Range<usize>,
    to: &'a mut [f32],
    stride: usize,
}

impl<E: Element> Kernel for Gather<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let PhaseRows { shape, phase, channels, first_row, .. } = self.source;
        let count = channels.len();
        for (row, to) in self.rows.zip(self.to.chunks_mut(self.stride)) {
            let (image, at) = phase.pixel(&shape.window, first_row + row);
            let mut k = self.depth.start;
            while k < self.depth.end {
                let (tap, channel) = (k / count, k % count);
                let length = (count - channel).min(self.depth.end - k);
                let to = &mut to[k - self.depth.start..][..length];
                match input_pixel(&shape.window, image, at, phase.tap_position(tap)) {
                    Some(pixel) => {
                        let from = pixel * shape.channels + channels.start + channel;
                        E::widen(isa, &self.input[from..from + length], to);
                    }
                    None => to.fill(0.0),
                }
                k += length;
            }
        }
    }
}

/// The input pixel that reaches the output pixel `at` by `tap`, which is one of its phase. `None` when it lies outside.
#[inline(always)]
fn input_pixel(window: &Window, image: usize, at: [usize; 3], tap: [usize; 3]) -> Option<usize> {
    let mut pixel = image;
    for axis in 0..3 {
        let along = (at[axis] + window.pads[axis]).checked_sub(tap[axis] * window.dilations[axis])?;
        let along = along / window.strides[axis];
        if along >= window.output[axis] {
            return None;
        }
        pixel = pixel * window.output[axis] + along;
    }
    Some(pixel)
}
