//! Depthwise convolution: each channel with its own small window, eight channels at a time, summed tap by tap from the
//! bias. Padding is skipped.

use std::ops::Range;

use super::Conv;
use crate::activation::Activation;
use crate::float::{Element, Floats, FloatsMut, mixed_types};
use crate::isa::{Instructions, Kernel};
use crate::window::{Pixel, Window};

/// Channels of a vector, and of the most vectors whose sums are kept in registers at a time.
const LANES: usize = 8;
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
        for row in 0..self.rows.len() {
            let at = row * self.channels;
            let mut first = 0;
            while first < self.channels {
                first += match self.channels - first {
                    BLOCK.. => self.vectors::<I, { BLOCK / LANES }>(isa, pixel, first, at),
                    LANES.. => self.vectors::<I, 1>(isa, pixel, first, at),
                    rest => self.few(isa, pixel, first..first + rest, at),
                };
            }
            pixel = self.window.next(pixel);
        }
    }
}

impl<E: Element> Typed<'_, E> {
    /// Finishes `VECTORS` vectors of channels from `first` on, of the pixel whose output begins at `at`; says how many channels.
    #[inline(always)]
    fn vectors<I: Instructions, const VECTORS: usize>(
        &mut self,
        isa: I,
        pixel: Pixel,
        first: usize,
        at: usize,
    ) -> usize {
        let mut sums = [[0.0f32; LANES]; VECTORS];
        if let Some(bias) = self.bias {
            sums.as_flattened_mut().copy_from_slice(&bias[first..first + VECTORS * LANES]);
        }
        self.taps(pixel, |input, weights| {
            let mut wide = [[0.0; LANES]; VECTORS];
            E::widen(isa, &self.input[input + first..][..VECTORS * LANES], wide.as_flattened_mut());
            let (weights, _) = self.weights[weights + first..][..VECTORS * LANES].as_chunks::<LANES>();
            for vector in 0..VECTORS {
                sums[vector] = std::array::from_fn(|lane| {
                    isa.mul_add(wide[vector][lane], weights[vector][lane], sums[vector][lane])
                });
            }
        });
        self.store(isa, at + first, sums.as_flattened_mut());
        VECTORS * LANES
    }

    /// The same for the `channels` that fill no vector.
    #[inline(always)]
    fn few<I: Instructions>(&mut self, isa: I, pixel: Pixel, channels: Range<usize>, at: usize) -> usize {
        let mut sums = [0.0; LANES];
        let sums = &mut sums[..channels.len()];
        if let Some(bias) = self.bias {
            sums.copy_from_slice(&bias[channels.clone()]);
        }
        self.taps(pixel, |input, weights| {
            let mut buffer = [0.0; LANES];
            let input = input + channels.start;
            let wide = E::read(isa, &self.input[input..input + sums.len()], &mut buffer);
            let weights = &self.weights[weights + channels.start..];
            for ((sum, x), weight) in sums.iter_mut().zip(wide).zip(weights) {
                *sum = isa.mul_add(*x, *weight, *sum);
            }
        });
        self.store(isa, at + channels.start, sums);
        channels.len()
    }

    /// Calls `tap` for each tap inside the image with where its pixel's channels and its weights begin.
    #[inline(always)]
    fn taps(&self, pixel: Pixel, mut tap: impl FnMut(usize, usize)) {
        let window = &self.window;
        let inside: [Range<usize>; 3] = std::array::from_fn(|axis| window.inside(axis, pixel.at[axis]));
        for kz in inside[0].clone() {
            for ky in inside[1].clone() {
                let (z, y) = (window.position(0, pixel.at[0], kz), window.position(1, pixel.at[1], ky));
                let line = window.input_pixel(pixel.image, [z, y, 0]);
                for kx in inside[2].clone() {
                    let x = window.position(2, pixel.at[2], kx);
                    let weights = (kz * window.kernel[1] + ky) * window.kernel[2] + kx;
                    tap((line + x) * self.channels, weights * self.channels);
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
