//! Conversion between number types: halves and floats in bulk with F16C where there is it, and every other pair. Floats to
//! integers truncate towards zero and saturate, NaN gives 0; wider integers to narrower ones keep the low bits; to floats
//! rounds to nearest, ties to even; what is not zero is true.

use half::{bf16, f16};

use crate::isa::{Instructions, Isa, Kernel};
pub use crate::number::Number;
use crate::number::{Scalar, with_type};

/// Converts halves to floats of the same number. Panics when the lengths differ.
pub fn widen(isa: Isa, input: &[f16], out: &mut [f32]) {
    assert_eq!(input.len(), out.len(), "a conversion keeps the number of elements");
    isa.run(Widen(input, out));
}

/// Converts floats to halves of the same number. Panics when the lengths differ.
pub fn narrow(isa: Isa, input: &[f32], out: &mut [f16]) {
    assert_eq!(input.len(), out.len(), "a conversion keeps the number of elements");
    isa.run(Narrow(input, out));
}

struct Widen<'a>(&'a [f16], &'a mut [f32]);

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        isa.widen(self.0, self.1);
    }
}

struct Narrow<'a>(&'a [f32], &'a mut [f16]);

impl Kernel for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        isa.narrow(self.0, self.1);
    }
}

/// Converts `input`, elements of type `from`, to `out`, elements of type `to`; both are aligned for their types.
///
/// # Panics
///
/// When alignment or numbers of elements do not fit: a defect of the caller.
pub fn cast(isa: Isa, from: Number, input: &[u8], to: Number, out: &mut [u8]) {
    match (from, to) {
        (Number::F16, Number::F32) => widen(isa, bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out)),
        (Number::F32, Number::F16) => narrow(isa, bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out)),
        (_, Number::Bool) => with_type!(from, From => truth::<From>(bytemuck::cast_slice(input), out)),
        _ => {
            with_type!(from, From => with_type!(to, To => each::<From, To>(bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out))))
        }
    }
}

fn each<A: Copy + Into<Wide>, B: FromWide>(input: &[A], out: &mut [B]) {
    assert_eq!(input.len(), out.len(), "a conversion keeps the number of elements");
    for (out, x) in out.iter_mut().zip(input) {
        *out = B::from_wide((*x).into());
    }
}

fn truth<A: Scalar>(input: &[A], out: &mut [u8]) {
    assert_eq!(input.len(), out.len(), "a conversion keeps the number of elements");
    for (out, x) in out.iter_mut().zip(input) {
        *out = u8::from(*x != A::ZERO);
    }
}

/// A number without loss.
enum Wide {
    /// Any integer.
    Integer(i128),
    /// Any float.
    Float(f64),
}

/// A type that any number can be converted to.
trait FromWide {
    fn from_wide(wide: Wide) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl From<$type> for Wide {
            fn from(value: $type) -> Wide {
                Wide::Integer(i128::from(value))
            }
        }

        impl FromWide for $type {
            fn from_wide(wide: Wide) -> $type {
                match wide {
                    Wide::Integer(value) => value as $type,
                    Wide::Float(value) => value as $type,
                }
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! floats {
    ($($type:ty, $to_double:expr, $of_double:expr;)*) => {$(
        impl From<$type> for Wide {
            fn from(value: $type) -> Wide {
                Wide::Float($to_double(value))
            }
        }

        impl FromWide for $type {
            fn from_wide(wide: Wide) -> $type {
                match wide {
                    // Integers that a double does not hold exactly are beyond the halves anyway.
                    Wide::Integer(value) => $of_double(value as f64),
                    Wide::Float(value) => $of_double(value),
                }
            }
        }
    )*};
}

floats! {
    f16, f16::to_f64, f16::from_f64;
    bf16, bf16::to_f64, bf16::from_f64;
    f64, std::convert::identity, std::convert::identity;
}

impl From<f32> for Wide {
    fn from(value: f32) -> Wide {
        Wide::Float(f64::from(value))
    }
}

impl FromWide for f32 {
    fn from_wide(wide: Wide) -> f32 {
        match wide {
            Wide::Integer(value) => value as f32,
            Wide::Float(value) => value as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted<A: bytemuck::Pod, B: bytemuck::Pod>(from: Number, value: A, to: Number) -> B {
        let mut out = [B::zeroed()];
        cast(Isa::detect(), from, bytemuck::bytes_of(&value), to, bytemuck::cast_slice_mut(&mut out));
        out[0]
    }

    #[test]
    fn floats_to_integers_truncate_and_saturate() {
        assert_eq!(converted::<f32, i8>(Number::F32, -1.9, Number::I8), -1);
        assert_eq!(converted::<f32, i8>(Number::F32, 300.0, Number::I8), 127);
        assert_eq!(converted::<f32, u16>(Number::F32, -5.0, Number::U16), 0);
        assert_eq!(converted::<f32, i64>(Number::F32, f32::INFINITY, Number::I64), i64::MAX);
        assert_eq!(converted::<f32, i32>(Number::F32, f32::NAN, Number::I32), 0);
        assert_eq!(converted::<f16, u8>(Number::F16, f16::from_f32(2.5), Number::U8), 2);
    }

    #[test]
    fn wider_integers_keep_the_low_bits() {
        assert_eq!(converted::<i64, u8>(Number::I64, -1, Number::U8), 255);
        assert_eq!(converted::<i32, i8>(Number::I32, 0x1_80, Number::I8), -128);
        assert_eq!(converted::<u64, i64>(Number::U64, u64::MAX, Number::I64), -1);
    }

    #[test]
    fn integers_round_to_the_nearest_float() {
        assert_eq!(converted::<i64, f32>(Number::I64, 16_777_217, Number::F32), 16_777_216.0);
        assert_eq!(converted::<i64, f16>(Number::I64, 2049, Number::F16), f16::from_f32(2048.0));
        assert_eq!(converted::<i64, f16>(Number::I64, i64::MAX, Number::F16), f16::INFINITY);
    }

    #[test]
    fn what_is_not_zero_is_true() {
        assert_eq!(converted::<f32, u8>(Number::F32, -0.0, Number::Bool), 0);
        assert_eq!(converted::<f32, u8>(Number::F32, 0.1, Number::Bool), 1);
        assert_eq!(converted::<f64, u8>(Number::F64, f64::NAN, Number::Bool), 1);
        assert_eq!(converted::<i64, u8>(Number::I64, 256, Number::Bool), 1);
        assert_eq!(converted::<u8, f64>(Number::Bool, 1, Number::F64), 1.0);
    }

    #[test]
    fn brain_floats_round_to_even() {
        assert_eq!(converted::<f32, bf16>(Number::F32, 1.0 + 1.0 / 256.0, Number::Bf16), bf16::from_f32(1.0));
        assert_eq!(converted::<f32, bf16>(Number::F32, 1.0 + 3.0 / 256.0, Number::Bf16), bf16::from_f32(1.015_625));
        assert_eq!(converted::<bf16, f32>(Number::Bf16, bf16::from_f32(-3.5), Number::F32), -3.5);
    }

    #[test]
    fn every_pair_of_types_converts_one() {
        for from in Number::ALL {
            let mut one = vec![0u64; 1];
            cast(Isa::detect(), Number::U8, &[1], from, &mut bytemuck::cast_slice_mut(&mut one)[..from.size()]);
            for to in Number::ALL {
                let mut out = vec![0u64; 1];
                cast(
                    Isa::detect(),
                    from,
                    &bytemuck::cast_slice(&one)[..from.size()],
                    to,
                    &mut bytemuck::cast_slice_mut(&mut out)[..to.size()],
                );
                let mut back = [0u8];
                cast(Isa::detect(), to, &bytemuck::cast_slice(&out)[..to.size()], Number::U8, &mut back);
                assert_eq!(back, [1], "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn all_halves_survive_the_way_to_floats_and_back() {
        for isa in [Isa::detect(), Isa::portable()] {
            let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
            let (mut floats, mut back) = (vec![0.0; halves.len()], vec![f16::ZERO; halves.len()]);
            widen(isa, &halves, &mut floats);
            narrow(isa, &floats, &mut back);
            for ((half, float), back) in halves.iter().zip(&floats).zip(&back) {
                assert_eq!(f64::from(*float).to_bits() & !(1 << 51), half.to_f64().to_bits() & !(1 << 51));
                assert!(back == half || (back.is_nan() && half.is_nan()));
            }
        }
    }

    #[test]
    fn floats_round_to_the_nearest_half_as_the_definition_says() {
        // Around every half: the middle to its upper neighbour goes to the even one, a step beyond does not.
        for bits in 0..0x7c00u16 {
            let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            let middle = if high.is_infinite() { 65520.0 } else { (low.to_f32() + high.to_f32()) / 2.0 };
            let inputs = [middle.next_down(), middle, middle.next_up()];
            let even = if bits % 2 == 0 { low } else { high };
            for isa in [Isa::detect(), Isa::portable()] {
                let mut out = [f16::ZERO; 3];
                narrow(isa, &inputs, &mut out);
                assert_eq!(out, [low, even, high], "between {low} and {high}");
            }
        }
    }
}
