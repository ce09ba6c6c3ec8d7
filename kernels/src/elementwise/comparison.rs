//! Comparisons of two tensors of one type, as truth values. NaN compares as IEEE says.

use std::ops::Range;

use bytemuck::cast_slice;

use super::Broadcast;
use super::pairs::each_pair;
use crate::number::{Number, Scalar, with_type};

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// a = b
    Equal,
    /// a < b
    Less,
    /// a <= b
    LessOrEqual,
    /// a > b
    Greater,
    /// a >= b
    GreaterOrEqual,
}

/// Computes `rows` of the output (see [`Broadcast::rows`]), bytes of 0 and 1; `a` and `b` are whole tensors of type `number`,
/// aligned for it.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn compare(
    comparison: Comparison,
    number: Number,
    broadcast: &Broadcast,
    rows: Range<usize>,
    (a, b): (&[u8], &[u8]),
    out: &mut [u8],
) {
    with_type!(number, T => {
        let operands: (&[T], &[T]) = (cast_slice(a), cast_slice(b));
        run(comparison, broadcast, rows, operands, out);
    });
}

fn run<T: Scalar>(
    comparison: Comparison,
    broadcast: &Broadcast,
    rows: Range<usize>,
    operands: (&[T], &[T]),
    out: &mut [u8],
) {
    match comparison {
        Comparison::Equal => each_pair(broadcast, rows, operands, out, |a, b| u8::from(a == b)),
        Comparison::Less => each_pair(broadcast, rows, operands, out, |a, b| u8::from(a < b)),
        Comparison::LessOrEqual => each_pair(broadcast, rows, operands, out, |a, b| u8::from(a <= b)),
        Comparison::Greater => each_pair(broadcast, rows, operands, out, |a, b| u8::from(a > b)),
        Comparison::GreaterOrEqual => each_pair(broadcast, rows, operands, out, |a, b| u8::from(a >= b)),
    }
}
