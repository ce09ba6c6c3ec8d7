//! The number types that kernels meet, as a value that is known only at run time, and what each can do as a Rust type.
//! Halves and bfloat16 compute in single precision and round once. It loops over nothing; the kernels for any type do.

use bytemuck::Pod;
use half::{bf16, f16};

/// A number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8 bit.
    U8,
    /// Unsigned 16 bit.
    U16,
    /// Unsigned 32 bit.
    U32,
    /// Unsigned 64 bit.
    U64,
    /// Signed 8 bit.
    I8,
    /// Signed 16 bit.
    I16,
    /// Signed 32 bit.
    I32,
    /// Signed 64 bit.
    I64,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Number {
    /// Every type.
    pub const ALL: [Number; 13] = [
        Number::Bool,
        Number::U8,
        Number::U16,
        Number::U32,
        Number::U64,
        Number::I8,
        Number::I16,
        Number::I32,
        Number::I64,
        Number::F16,
        Number::Bf16,
        Number::F32,
        Number::F64,
    ];

    /// Bytes an element.
    pub const fn size(self) -> usize {
        match self {
            Number::Bool | Number::U8 | Number::I8 => 1,
            Number::U16 | Number::I16 | Number::F16 | Number::Bf16 => 2,
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::U64 | Number::I64 | Number::F64 => 8,
        }
    }
}

/// Runs `$then` with `$alias` standing for the Rust type of `$number`; truth values are bytes.
macro_rules! with_type {
    ($number:expr, $alias:ident => $then:expr) => {
        crate::number::with_type!(
            $number, $alias => $then,
            Bool: u8, U8: u8, U16: u16, U32: u32, U64: u64, I8: i8, I16: i16, I32: i32, I64: i64,
            F16: half::f16, Bf16: half::bf16, F32: f32, F64: f64
        )
    };
    ($number:expr, $alias:ident => $then:expr, $($variant:ident: $type:ty),*) => {
        match $number {
            $(crate::number::Number::$variant => {
                type $alias = $type;
                $then
            })*
        }
    };
}
pub(crate) use with_type;

/// A number that kernels for any type compute with. Integers wrap around; division by zero gives 0.
pub(crate) trait Scalar: Pod + PartialOrd {
    /// What sums and products along an axis are kept in.
    type Wide: Scalar;

    const ZERO: Self;
    const ONE: Self;
    /// Not larger than any number.
    const LEAST: Self;
    /// Not smaller than any number.
    const GREATEST: Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Integers towards zero.
    fn over(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    /// With the dividend's sign, as C has it.
    fn remainder(self, divisor: Self) -> Self;
    fn magnitude(self) -> Self;
    fn is_nan(self) -> bool;
    fn to_f64(self) -> f64;
    fn of_f64(value: f64) -> Self;
    fn wide(self) -> Self::Wide;
    fn of_wide(wide: Self::Wide) -> Self;

    /// The larger; NaN if one is NaN.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The smaller; NaN if one is NaN.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }

    /// The remainder with the divisor's sign, as Python has it.
    #[inline(always)]
    fn modulo(self, divisor: Self) -> Self {
        let remainder = self.remainder(divisor);
        if remainder != Self::ZERO && (remainder < Self::ZERO) != (divisor < Self::ZERO) {
            remainder.plus(divisor)
        } else {
            remainder
        }
    }

    /// -1, 0 or 1; NaN stays.
    #[inline(always)]
    fn sign(self) -> Self {
        if self > Self::ZERO {
            Self::ONE
        } else if self < Self::ZERO {
            Self::ZERO.minus(Self::ONE)
        } else {
            self
        }
    }
}

macro_rules! integers {
    ($($type:ty, $magnitude:expr;)*) => {$(
        impl Scalar for $type {
            type Wide = $type;
            const ZERO: $type = 0;
            const ONE: $type = 1;
            const LEAST: $type = <$type>::MIN;
            const GREATEST: $type = <$type>::MAX;

            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: $type) -> $type {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn times(self, other: $type) -> $type {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn over(self, other: $type) -> $type {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }

            /// Negative exponents truncate the fraction to 0, but for bases 1 and -1.
            fn power(self, exponent: $type) -> $type {
                let exponent = i128::from(exponent);
                match u32::try_from(exponent) {
                    Ok(exponent) => self.wrapping_pow(exponent),
                    Err(_) if self == 1 || (self == <$type>::ZERO.minus(1) && exponent % 2 == 0) => 1,
                    Err(_) if self == <$type>::ZERO.minus(1) => self,
                    Err(_) => 0,
                }
            }

            #[inline(always)]
            fn remainder(self, divisor: $type) -> $type {
                if divisor == 0 { 0 } else { self.wrapping_rem(divisor) }
            }

            #[inline(always)]
            fn magnitude(self) -> $type {
                $magnitude(self)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn of_f64(value: f64) -> $type {
                value as $type
            }

            #[inline(always)]
            fn wide(self) -> $type {
                self
            }

            #[inline(always)]
            fn of_wide(wide: $type) -> $type {
                wide
            }
        }
    )*};
}

integers! {
    u8, std::convert::identity;
    u16, std::convert::identity;
    u32, std::convert::identity;
    u64, std::convert::identity;
    i8, i8::wrapping_abs;
    i16, i16::wrapping_abs;
    i32, i32::wrapping_abs;
    i64, i64::wrapping_abs;
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Scalar for $type {
            type Wide = $type;
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;
            const LEAST: $type = <$type>::NEG_INFINITY;
            const GREATEST: $type = <$type>::INFINITY;

            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                self + other
            }

            #[inline(always)]
            fn minus(self, other: $type) -> $type {
                self - other
            }

            #[inline(always)]
            fn times(self, other: $type) -> $type {
                self * other
            }

            #[inline(always)]
            fn over(self, other: $type) -> $type {
                self / other
            }

            #[inline(always)]
            fn power(self, exponent: $type) -> $type {
                f64::from(self).powf(f64::from(exponent)) as $type
            }

            #[inline(always)]
            fn remainder(self, divisor: $type) -> $type {
                self % divisor
            }

            /// A zero has the divisor's sign, and so has what an infinite divisor leaves.
            fn modulo(self, divisor: $type) -> $type {
                let remainder = self % divisor;
                if remainder == 0.0 {
                    <$type>::copysign(0.0, divisor)
                } else if (remainder < 0.0) != (divisor < 0.0) {
                    remainder + divisor
                } else {
                    remainder
                }
            }

            #[inline(always)]
            fn magnitude(self) -> $type {
                self.abs()
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn of_f64(value: f64) -> $type {
                value as $type
            }

            #[inline(always)]
            fn wide(self) -> $type {
                self
            }

            #[inline(always)]
            fn of_wide(wide: $type) -> $type {
                wide
            }
        }
    )*};
}
floats!(f32, f64);

macro_rules! narrow_floats {
    ($($type:ty),*) => {$(
        impl Scalar for $type {
            type Wide = f32;
            const ZERO: $type = <$type>::ZERO;
            const ONE: $type = <$type>::ONE;
            const LEAST: $type = <$type>::NEG_INFINITY;
            const GREATEST: $type = <$type>::INFINITY;

            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                <$type>::from_f32(self.to_f32() + other.to_f32())
            }

            #[inline(always)]
            fn minus(self, other: $type) -> $type {
                <$type>::from_f32(self.to_f32() - other.to_f32())
            }

            #[inline(always)]
            fn times(self, other: $type) -> $type {
                <$type>::from_f32(self.to_f32() * other.to_f32())
            }

            #[inline(always)]
            fn over(self, other: $type) -> $type {
                <$type>::from_f32(self.to_f32() / other.to_f32())
            }

            #[inline(always)]
            fn power(self, exponent: $type) -> $type {
                <$type>::from_f64(self.to_f64().powf(exponent.to_f64()))
            }

            #[inline(always)]
            fn remainder(self, divisor: $type) -> $type {
                <$type>::from_f32(self.to_f32() % divisor.to_f32())
            }

            #[inline(always)]
            fn modulo(self, divisor: $type) -> $type {
                <$type>::from_f32(self.to_f32().modulo(divisor.to_f32()))
            }

            #[inline(always)]
            fn magnitude(self) -> $type {
                <$type>::from_bits(self.to_bits() & 0x7fff)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                <$type>::to_f64(self)
            }

            #[inline(always)]
            fn of_f64(value: f64) -> $type {
                <$type>::from_f64(value)
            }

            #[inline(always)]
            fn wide(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn of_wide(wide: f32) -> $type {
                <$type>::from_f32(wide)
            }
        }
    )*};
}
narrow_floats!(f16, bf16);
