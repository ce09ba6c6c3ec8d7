//! Operations on the bits of two tensors of integers or truth values.

use std::ops::Range;

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::Broadcast;
use super::pairs::each_pair;
use crate::number::Number;

/// An operation on the bits of two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bitwise {
    /// a & b
    And,
    /// a | b
    Or,
    /// a ^ b
    ExclusiveOr,
    /// a << b; 0 where b is negative or as many bits as there are
    ShiftLeft,
    /// a >> b, filled with the sign; nothing but that where b is negative or as many bits as there are
    ShiftRight,
}

/// Computes `rows` of the output (see [`Broadcast::rows`]); `a`, `b` and `out` are whole tensors of type `number`, an integer
/// or `Bool`, aligned for it.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn bitwise(
    operation: Bitwise,
    number: Number,
    broadcast: &Broadcast,
    rows: Range<usize>,
    (a, b): (&[u8], &[u8]),
    out: &mut [u8],
) {
    macro_rules! run {
        ($type:ty) => {
            run::<$type>(operation, broadcast, rows, (cast_slice(a), cast_slice(b)), cast_slice_mut(out))
        };
    }
    match number {
        Number::Bool | Number::U8 => run!(u8),
        Number::U16 => run!(u16),
        Number::U32 => run!(u32),
        Number::U64 => run!(u64),
        Number::I8 => run!(i8),
        Number::I16 => run!(i16),
        Number::I32 => run!(i32),
        Number::I64 => run!(i64),
        Number::F16 | Number::Bf16 | Number::F32 | Number::F64 => no_bits(number),
    }
}

#[cold]
#[allow(clippy::panic, reason = "plans are typed when they are lowered; reaching this is a defect of the caller")]
fn no_bits(number: Number) {
    panic!("{number:?} has no operations on its bits");
}

fn run<T: Bits>(operation: Bitwise, broadcast: &Broadcast, rows: Range<usize>, operands: (&[T], &[T]), out: &mut [T]) {
    match operation {
        Bitwise::And => each_pair(broadcast, rows, operands, out, T::and),
        Bitwise::Or => each_pair(broadcast, rows, operands, out, T::or),
        Bitwise::ExclusiveOr => each_pair(broadcast, rows, operands, out, T::exclusive_or),
        Bitwise::ShiftLeft => each_pair(broadcast, rows, operands, out, T::shift_left),
        Bitwise::ShiftRight => each_pair(broadcast, rows, operands, out, T::shift_right),
    }
}

/// An integer.
trait Bits: Pod {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn exclusive_or(self, other: Self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
}

macro_rules! bits {
    ($($type:ty),*) => {$(
        impl Bits for $type {
            #[inline(always)]
            fn and(self, other: $type) -> $type {
                self & other
            }

            #[inline(always)]
            fn or(self, other: $type) -> $type {
                self | other
            }

            #[inline(always)]
            fn exclusive_or(self, other: $type) -> $type {
                self ^ other
            }

            #[inline(always)]
            fn shift_left(self, by: $type) -> $type {
                u32::try_from(by).ok().and_then(|by| self.checked_shl(by)).unwrap_or(0)
            }

            #[inline(always)]
            fn shift_right(self, by: $type) -> $type {
                // all but one bit, then the last: what is left is the sign of a signed number, 0 of an unsigned one
                let sign = self >> (<$type>::BITS - 1) >> 1;
                u32::try_from(by).ok().and_then(|by| self.checked_shr(by)).unwrap_or(sign)
            }
        }
    )*};
}
bits!(u8, u16, u32, u64, i8, i16, i32, i64);
