//! Layer normalisation and root-mean-square normalisation of rows, in single precision: the statistics of each row from its
//! own elements alone, long sums in pieces that are added in double precision.

use std::ops::Range;

use crate::float::{CHUNK, Element, Floats, FloatsMut, mixed_types};
use crate::isa::{Instructions, Isa, Kernel};
use crate::lanes::fold_sum;

/// A normalisation of rows apart from the rows.
#[derive(Debug, Clone, Copy)]
pub struct Normalise<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// Elements of a row.
    pub columns: usize,
    /// Whether the mean is subtracted first.
    pub centred: bool,
    /// Added to the mean square.
    pub epsilon: f32,
    /// Factors, one a column, of the rows' type.
    pub scale: Option<Floats<'a>>,
    /// Summands, one a column, of the rows' type.
    pub bias: Option<Floats<'a>>,
}

impl Normalise<'_> {
    /// Bytes of scratch for one call.
    pub fn scratch_bytes(columns: usize) -> usize {
        columns.saturating_mul(3 * size_of::<f32>())
    }

    /// Writes the rows `rows` of `out`; both are whole tensors. `scratch` has at least [`Normalise::scratch_bytes`], aligned
    /// to 64, of any content.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, rows: Range<usize>, input: Floats<'_>, out: FloatsMut<'_>, scratch: &mut [u8]) {
        let scratch = bytemuck::cast_slice_mut(scratch);
        match (input, out) {
            (Floats::F16(input), FloatsMut::F16(out)) => {
                self.isa.run(Run { normalise: self, rows, input, out, scratch })
            }
            (Floats::F32(input), FloatsMut::F32(out)) => {
                self.isa.run(Run { normalise: self, rows, input, out, scratch })
            }
            (input, out) => mixed_types(&input, &out),
        }
    }
}

struct Run<'a, E> {
    normalise: &'a Normalise<'a>,
    rows: Range<usize>,
    input: &'a [E],
    out: &'a mut [E],
    scratch: &'a mut [f32],
}

impl<E: Element> Kernel for Run<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let Normalise { columns, centred, epsilon, scale, bias, .. } = *self.normalise;
        let (wide, rest) = self.scratch.split_at_mut(columns);
        let (scales, biases) = rest[..2 * columns].split_at_mut(columns);
        fill(isa, scale, 1.0, scales);
        fill(isa, bias, 0.0, biases);
        for row in self.rows {
            let range = row * columns..(row + 1) * columns;
            E::widen(isa, &self.input[range.clone()], wide);
            if centred {
                let mean = (sum(wide, |x| x) / columns as f64) as f32;
                for x in wide.iter_mut() {
                    *x -= mean;
                }
            }
            let square = (sum(wide, |x| x * x) / columns as f64) as f32;
            let factor = 1.0 / (square + epsilon).sqrt();
            for (x, (scale, bias)) in wide.iter_mut().zip(scales.iter().zip(&*biases)) {
                *x = isa.mul_add(*x * factor, *scale, *bias);
            }
            E::narrow(isa, wide, &mut self.out[range]);
        }
    }
}

#[inline(always)]
fn fill<I: Instructions>(isa: I, from: Option<Floats<'_>>, otherwise: f32, to: &mut [f32]) {
    match from {
        Some(Floats::F16(from)) => isa.widen(&from[..to.len()], to),
        Some(Floats::F32(from)) => to.copy_from_slice(&from[..to.len()]),
        None => to.fill(otherwise),
    }
}

/// The sum of what `map` makes of `values`.
#[inline(always)]
fn sum(values: &[f32], map: impl Fn(f32) -> f32) -> f64 {
    let mut total = 0.0;
    for values in values.chunks(CHUNK) {
        let mut mapped = [0.0; CHUNK];
        for (mapped, x) in mapped.iter_mut().zip(values) {
            *mapped = map(*x);
        }
        total += f64::from(fold_sum(&mapped[..values.len()]));
    }
    total
}
