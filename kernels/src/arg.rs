//! The position of the largest or smallest element along an axis, for any number type. NaN is neither; where all are NaN the
//! position is 0.

use std::ops::Range;

use bytemuck::cast_slice;

use crate::lanes::Strip;
use crate::number::{Number, Scalar, with_type};

/// Which element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extreme {
    /// The largest, or else the smallest.
    pub largest: bool,
    /// Of equal ones the last wins, or else the first.
    pub last: bool,
}

/// Writes the positions for the slices `slices` of `input`, a whole tensor of type `number` seen as `[slices, axis, inner]`
/// and aligned for it, into `out`, seen as `[slices, inner]`.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn extreme_positions(
    extreme: Extreme,
    number: Number,
    strip: Strip,
    slices: Range<usize>,
    input: &[u8],
    out: &mut [i64],
) {
    with_type!(number, T => {
        let input: &[T] = cast_slice(input);
        match extreme.largest {
            true => run(extreme, strip, slices, input, out, |a: T, b: T| a > b),
            false => run(extreme, strip, slices, input, out, |a: T, b: T| a < b),
        }
    });
}

fn run<T: Scalar>(
    extreme: Extreme,
    Strip { axis, inner }: Strip,
    slices: Range<usize>,
    input: &[T],
    out: &mut [i64],
    beats: impl Fn(T, T) -> bool,
) {
    for slice in slices {
        for column in 0..inner {
            let start = slice * axis * inner + column;
            let mut position = 0;
            for k in 1..axis {
                let (best, x) = (input[start + position * inner], input[start + k * inner]);
                if beats(x, best) || (extreme.last && x == best) || (best.is_nan() && !x.is_nan()) {
                    position = k;
                }
            }
            out[slice * inner + column] = i64::try_from(position).unwrap_or(i64::MAX);
        }
    }
}
