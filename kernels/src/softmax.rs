//! exp(x - max) / sum(exp(x - max)) along one axis, or its logarithm. Sums run in lanes that are fixed by the position along the axis, so a
//! row's bits do not depend on what lies beside it.

use std::ops::Range;

use crate::float::{CHUNK, Element, Floats, FloatsMut, same_float_type};
use crate::isa::{Instructions, Isa, Kernel};
use crate::lanes::{Strip, add_to_lanes, finish_sum, fold_max, fold_sum};
use crate::math::{exp, log};

/// Positions beside each other that are normalised at a time when the axis is not the innermost.
const BLOCK: usize = 32;

/// Normalises the slices `slices` of `input` into `out`, or with `logarithm` gives the logarithms of that. Both are whole tensors seen as `[slices, axis, inner]`; `scratch`
/// has at least [`softmax_scratch_bytes`] bytes, aligned to 64, of any content.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn softmax(
    isa: Isa,
    logarithm: bool,
    strip: Strip,
    slices: Range<usize>,
    input: Floats<'_>,
    out: FloatsMut<'_>,
    scratch: &mut [u8],
) {
    let scratch = bytemuck::cast_slice_mut(scratch);
    same_float_type!(input, out, |input, out| isa.run(Softmax { logarithm, strip, slices, input, out, scratch }));
}

/// Bytes of scratch for tensors of `strip`.
pub fn softmax_scratch_bytes(strip: Strip) -> usize {
    strip.axis.saturating_mul(strip.inner.min(BLOCK)).saturating_mul(size_of::<f32>())
}

struct Softmax<'a, E> {
    logarithm: bool,
    strip: Strip,
    slices: Range<usize>,
    input: &'a [E],
    out: &'a mut [E],
    scratch: &'a mut [f32],
}

impl<E: Element> Kernel for Softmax<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, isa: I) {
        let Strip { axis, inner } = self.strip;
        if axis == 0 || inner == 0 {
            return;
        }
        for slice in self.slices.clone() {
            if inner == 1 {
                self.row(isa, slice * axis);
            } else {
                for first in (0..inner).step_by(BLOCK) {
                    self.block(isa, slice * axis * inner + first, (inner - first).min(BLOCK));
                }
            }
        }
    }
}

impl<E: Element> Softmax<'_, E> {
    /// An innermost axis: lanes run along it.
    #[inline(always)]
    fn row<I: Instructions>(&mut self, isa: I, at: usize) {
        let wide = &mut self.scratch[..self.strip.axis];
        E::widen(isa, &self.input[at..at + wide.len()], wide);
        let max = fold_max(wide);
        if self.logarithm {
            let mut lanes = [0.0; 8];
            for values in wide.chunks_mut(CHUNK) {
                let mut powers = [0.0; CHUNK];
                for (x, power) in values.iter_mut().zip(&mut powers) {
                    *x -= max;
                    *power = exp(isa, *x);
                }
                add_to_lanes(&mut lanes, &powers[..values.len()]);
            }
            let sum = log(isa, finish_sum(lanes));
            for x in wide.iter_mut() {
                *x -= sum;
            }
        } else {
            for x in wide.iter_mut() {
                *x = exp(isa, *x - max);
            }
            let sum = fold_sum(wide);
            for x in wide.iter_mut() {
                *x /= sum;
            }
        }
        E::narrow(isa, wide, &mut self.out[at..at + wide.len()]);
    }

    /// Another axis: lanes run across it, over `width` neighbours from element `at` on.
    #[inline(always)]
    fn block<I: Instructions>(&mut self, isa: I, at: usize, width: usize) {
        let Strip { axis, inner } = self.strip;
        let wide = &mut self.scratch[..axis * width];
        let (mut max, mut sum) = ([f32::NEG_INFINITY; BLOCK], [0.0f32; BLOCK]);
        let (max, sum) = (&mut max[..width], &mut sum[..width]);
        for (k, wide) in wide.chunks_exact_mut(width).enumerate() {
            let at = at + k * inner;
            E::widen(isa, &self.input[at..at + width], wide);
            for (max, x) in max.iter_mut().zip(&*wide) {
                *max = if *x > *max || x.is_nan() { *x } else { *max };
            }
        }
        for wide in wide.chunks_exact_mut(width) {
            for ((x, max), sum) in wide.iter_mut().zip(&*max).zip(&mut *sum) {
                let power = exp(isa, *x - *max);
                *sum += power;
                *x = if self.logarithm { *x - *max } else { power };
            }
        }
        if self.logarithm {
            sum.iter_mut().for_each(|sum| *sum = log(isa, *sum));
        }
        for (k, wide) in wide.chunks_exact_mut(width).enumerate() {
            for (x, sum) in wide.iter_mut().zip(&*sum) {
                *x = if self.logarithm { *x - *sum } else { *x / *sum };
            }
            let at = at + k * inner;
            E::narrow(isa, wide, &mut self.out[at..at + width]);
        }
    }
}
