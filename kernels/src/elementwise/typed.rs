//! Arithmetic of two tensors of any number type, each result rounded once, or wrapped around. Halves and floats have a faster
//! way, [`Binary`](super::Binary); both give the same bits.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};

use super::pairs::each_pair;
use super::{Arithmetic, Broadcast};
use crate::number::{Number, Scalar, with_type};

/// Computes `rows` of the output (see [`Broadcast::rows`]); `a`, `b` and `out` are whole tensors of type `number`, aligned
/// for it.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn arithmetic(
    arithmetic: Arithmetic,
    number: Number,
    broadcast: &Broadcast,
    rows: Range<usize>,
    (a, b): (&[u8], &[u8]),
    out: &mut [u8],
) {
    with_type!(number, T => {
        let operands: (&[T], &[T]) = (cast_slice(a), cast_slice(b));
        run(arithmetic, broadcast, rows, operands, cast_slice_mut(out));
    });
}

fn run<T: Scalar>(
    arithmetic: Arithmetic,
    broadcast: &Broadcast,
    rows: Range<usize>,
    operands: (&[T], &[T]),
    out: &mut [T],
) {
    match arithmetic {
        Arithmetic::Add => each_pair(broadcast, rows, operands, out, T::plus),
        Arithmetic::Subtract => each_pair(broadcast, rows, operands, out, T::minus),
        Arithmetic::Multiply => each_pair(broadcast, rows, operands, out, T::times),
        Arithmetic::Divide => each_pair(broadcast, rows, operands, out, T::over),
        Arithmetic::Power => each_pair(broadcast, rows, operands, out, T::power),
        Arithmetic::Remainder => each_pair(broadcast, rows, operands, out, T::remainder),
        Arithmetic::Modulo => each_pair(broadcast, rows, operands, out, T::modulo),
        Arithmetic::Maximum => each_pair(broadcast, rows, operands, out, T::larger),
        Arithmetic::Minimum => each_pair(broadcast, rows, operands, out, T::smaller),
        Arithmetic::Rectify => {
            each_pair(broadcast, rows, operands, out, |a: T, b: T| if a < T::ZERO { a.times(b) } else { a })
        }
    }
}
