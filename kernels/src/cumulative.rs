//! Running sums and products along one axis, for any number type; halves and bfloat16 run in single precision.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};

use crate::lanes::Strip;
use crate::number::{Number, Scalar, with_type};

/// How elements run up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cumulative {
    /// Products, or else sums.
    pub product: bool,
    /// An element takes in those before it, without itself.
    pub exclusive: bool,
    /// From the last element to the first.
    pub reverse: bool,
}

/// Writes the slices `slices` of `out`; both tensors are whole, of type `number`, aligned for it and seen as
/// `[slices, axis, inner]`.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn cumulate(
    cumulative: Cumulative,
    number: Number,
    strip: Strip,
    slices: Range<usize>,
    input: &[u8],
    out: &mut [u8],
) {
    with_type!(number, T => run::<T>(cumulative, strip, slices, cast_slice(input), cast_slice_mut(out)));
}

fn run<T: Scalar>(
    Cumulative { product, exclusive, reverse }: Cumulative,
    Strip { axis, inner }: Strip,
    slices: Range<usize>,
    input: &[T],
    out: &mut [T],
) {
    for slice in slices {
        for column in 0..inner {
            let mut total = if product { T::Wide::ONE } else { T::Wide::ZERO };
            for step in 0..axis {
                let k = if reverse { axis - 1 - step } else { step };
                let at = (slice * axis + k) * inner + column;
                let x = input[at].wide();
                let next = if product { total.times(x) } else { total.plus(x) };
                out[at] = T::of_wide(if exclusive { total } else { next });
                total = next;
            }
        }
    }
}
