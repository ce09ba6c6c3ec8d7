//! Depthwise convolution: each channel with its own small window, eight channels at a time, summed tap by tap from the
//! bias. Padding is skipped.

use std::ops::Range;

use super::Conv;
use crate::activation::Activation;
use crate::float::{Element, Floats, FloatsMut, mixed_types};
use crate::isa::{Instructions, Kernel};
use crate::window::{Pixel, Window};

/// Channels whose sums are kept in registers at a time.
const BLOCK: usize = 32;

/// Some output pixels of a depthwise convolution.
pub(super) struct Depthwise<'a> {
    pub conv: &'a Conv<'a>,
    pub weights: &'a [f32],
    pub rows: Range<usize>,
}

impl Depthwise<'_> {
    pub(super) fn run(self, input: Floats<'_>, residual: Option<Floats<'_>>, out: FloatsMut<'_>) {
        match (input, residual, out) {
            (Floats::F16(input), None, FloatsMut::F16(out)) => self.typed(input, None, out),
            (Floats::F32(input), None, FloatsMut::F32(out)) => self.typed(input, None, out),
            (Floats::F16(input), Some(Floats::F16(residual)), FloatsMut::F16(out)) => {
                self.typed(input, Some(residual), out)
            }
            (Floats::F32(input), Some(Floats::F32(residual)), FloatsMut::F32(out)) => {
                self.typed(input, Some(residual), out)
            }
            (input, residual, out) => mixed_types(&residual.unwrap_or(input), &out),
        }
    }

    fn typed<E: Element>(self, input: &[E], residual: Option<&[E]>, out: &mut [E]) {
        let Conv { isa, shape, bias, activation, .. } = *self.conv;
        let (weights, rows, channels) = (self.weights, self.rows, shape.channels);
        isa.run(Typed { window: shape.window, channels, weights, bias, activation, rows, input, residual, out });
    }
}

struct Typed<'a, E> {
    window: Window,
    channels: usize,
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
    activation: Activation,
    rows: Range<usize>,
    input: &'a [E],
    residual: Option<&'a [E]>,
    out: &'a mut [E],
}

impl<E: Element> Kernel for Typed<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, isa: I) {
        let mut pixel = self.window.pixel(self.rows.start);
        for row in self.rows.clone() {
            for first in (0..self.channels).step_by(BLOCK) {
                let channels = first..(first + BLOCK).min(self.channels);
                let mut sums = [0.0; BLOCK];
                self.sum(isa, pixel, channels.clone(), &mut sums[..channels.len()]);
                self.store(isa, row * self.channels + first, &mut sums[..channels.len()]);
            }
            pixel = self.window.next(pixel);
        }
    }
}

impl<E: Element> Typed<'_, E> {
    #[inline(always)]
    fn sum<I: Instructions>(&self, isa: I, pixel: Pixel, channels: Range<usize>, sums: &mut [f32]) {
        if let Some(bias) = self.bias {
            sums.copy_from_slice(&bias[channels.clone()]);
        }
        let window = &self.window;
        let inside: [Range<usize>; 3] = std::array::from_fn(|axis| window.inside(axis, pixel.at[axis]));
        for kz in inside[0].clone() {
            for ky in inside[1].clone() {
                let (z, y) = (window.position(0, pixel.at[0], kz), window.position(1, pixel.at[1], ky));
                let line = window.input_pixel(pixel.image, [z, y, 0]);
                for kx in inside[2].clone() {
                    let x = window.position(2, pixel.at[2], kx);
                    let at = (line + x) * self.channels + channels.start;
                    let mut buffer = [0.0; BLOCK];
                    let wide = E::read(isa, &self.input[at..at + sums.len()], &mut buffer);
                    let tap = (kz * window.kernel[1] + ky) * window.kernel[2] + kx;
                    let at = tap * self.channels + channels.start;
                    let weights = &self.weights[at..at + sums.len()];
                    for ((sum, x), weight) in sums.iter_mut().zip(wide).zip(weights) {
                        *sum = isa.mul_add(*x, *weight, *sum);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn store<I: Instructions>(&mut self, isa: I, at: usize, sums: &mut [f32]) {
        if let Some(residual) = self.residual {
            let mut buffer = [0.0; BLOCK];
            let wide = E::read(isa, &residual[at..at + sums.len()], &mut buffer);
            for (sum, residual) in sums.iter_mut().zip(wide) {
                *sum += residual;
            }
        }
        self.activation.apply(isa, sums);
        E::narrow(isa, sums, &mut self.out[at..at + sums.len()]);
    }
}
