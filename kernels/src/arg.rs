//! The position of the largest element along an axis. NaN is never the largest; where all are NaN the position is 0.

use std::ops::Range;

use crate::float::{Element, Floats};
use crate::isa::{Instructions, Isa, Kernel};
use crate::lanes::Strip;

/// Writes the positions for the slices `slices` of `input`, a whole tensor seen as `[slices, axis, inner]`, into `out`,
/// seen as `[slices, inner]`. Of equal elements the first wins, or with `last` the last.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn arg_max(isa: Isa, strip: Strip, last: bool, slices: Range<usize>, input: Floats<'_>, out: &mut [i64]) {
    match input {
        Floats::F16(input) => isa.run(ArgMax { strip, last, slices, input, out }),
        Floats::F32(input) => isa.run(ArgMax { strip, last, slices, input, out }),
    }
}

struct ArgMax<'a, E> {
    strip: Strip,
    last: bool,
    slices: Range<usize>,
    input: &'a [E],
    out: &'a mut [i64],
}

impl<E: Element> Kernel for ArgMax<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, _: I) {
        let Strip { axis, inner } = self.strip;
        for slice in self.slices {
            for column in 0..inner {
                let start = slice * axis * inner + column;
                let (mut largest, mut position) = (f32::NAN, 0);
                for k in 0..axis {
                    let x = self.input[start + k * inner].to_f32();
                    let wins = x > largest || (self.last && x == largest) || (largest.is_nan() && !x.is_nan());
                    if wins {
                        (largest, position) = (x, k);
                    }
                }
                self.out[slice * inner + column] = i64::try_from(position).unwrap_or(i64::MAX);
            }
        }
    }
}
