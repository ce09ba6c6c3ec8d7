//! Unfolds windows of an image into rows while a product packs them, so that the unfolded matrix never exists. It only
//! moves and widens values; padding becomes zeros.

use std::ops::Range;

use super::ConvShape;
use crate::float::{Element, Floats};
use crate::gemm::RowSource;
use crate::isa::{Instructions, Isa, Kernel};
use crate::window::Pixel;

/// The rows of one group: row `r` is output pixel `r`, column `tap * group channels + c` its input.
pub(super) struct Im2col<'a> {
    pub isa: Isa,
    pub shape: ConvShape,
    pub input: Floats<'a>,
    pub first_channel: usize,
}

impl RowSource for Im2col<'_> {
    fn pack(&self, rows: Range<usize>, depth: Range<usize>, to: &mut [f32], stride: usize) {
        let (shape, first_channel) = (self.shape, self.first_channel);
        match self.input {
            Floats::F16(input) => self.isa.run(Unfold { shape, first_channel, input, rows, depth, to, stride }),
            Floats::F32(input) => self.isa.run(Unfold { shape, first_channel, input, rows, depth, to, stride }),
        }
    }
}

struct Unfold<'a, E> {
    shape: ConvShape,
    first_channel: usize,
    input: &'a [E],
    rows: Range<usize>,
    depth: Range<usize>,
    to: &'a mut [f32],
    stride: usize,
}

impl<E: Element> Kernel for Unfold<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, isa: I) {
        let window = self.shape.window;
        let mut pixel = window.pixel(self.rows.start);
        let stride = self.stride;
        for row in 0..self.rows.len() {
            self.unfold(isa, pixel, row * stride);
            pixel = window.next(pixel);
        }
    }
}

impl<E: Element> Unfold<'_, E> {
    /// Writes one row at `to[at..]`, one kernel row after the other.
    #[inline(always)]
    fn unfold<I: Instructions>(&mut self, isa: I, pixel: Pixel, at: usize) {
        let window = self.shape.window;
        let kernel_row = window.kernel[2] * self.shape.group_channels();
        let [inside_z, inside_y, inside_x]: [Range<usize>; 3] =
            std::array::from_fn(|axis| window.inside(axis, pixel.at[axis]));
        let mut k = self.depth.start;
        while k < self.depth.end {
            let line = k / kernel_row;
            let part = k % kernel_row..(self.depth.end - line * kernel_row).min(kernel_row);
            let to = at + (k - self.depth.start);
            k += part.len();
            let (kz, ky) = (line / window.kernel[1], line % window.kernel[1]);
            if inside_z.contains(&kz) && inside_y.contains(&ky) {
                let (z, y) = (window.position(0, pixel.at[0], kz), window.position(1, pixel.at[1], ky));
                let line = window.input_pixel(pixel.image, [z, y, 0]);
                self.unfold_line(isa, line, pixel.at[2], inside_x.clone(), part, to);
            } else {
                self.to[to..to + part.len()].fill(0.0);
            }
        }
    }

    /// Writes `part` of one kernel row, which lies over the image line that begins at pixel `line`.
    #[inline(always)]
    fn unfold_line<I: Instructions>(
        &mut self,
        isa: I,
        line: usize,
        x: usize,
        inside: Range<usize>,
        part: Range<usize>,
        to: usize,
    ) {
        let (window, channels) = (self.shape.window, self.shape.group_channels());
        // Taps next to each other are one run of memory where nothing lies between their channels.
        let joined = window.dilations[2] == 1 && self.shape.groups == 1;
        let mut k = part.start;
        while k < part.end {
            let kx = k / channels;
            let taps = if !inside.contains(&kx) {
                if kx < inside.start { kx..inside.start } else { kx..window.kernel[2] }
            } else if joined {
                kx..inside.end
            } else {
                kx..kx + 1
            };
            let end = (taps.end * channels).min(part.end);
            let to = &mut self.to[to + (k - part.start)..to + (end - part.start)];
            if inside.contains(&kx) {
                let pixel = line + window.position(2, x, kx);
                let from = pixel * self.shape.channels + self.first_channel + (k - kx * channels);
                E::widen(isa, &self.input[from..from + to.len()], to);
            } else {
                to.fill(0.0);
            }
            k = end;
        }
    }
}
