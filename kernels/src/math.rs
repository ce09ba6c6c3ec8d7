//! Exponential, hyperbolic tangent and logistic function in single precision, as plain arithmetic that the compiler can
//! run on eight lanes at once. One source for vectors and their tails: a value gives the same bits wherever in a tensor
//! it lies. Softmax, activations and unary kernels call it.

use crate::isa::Instructions;

/// Adding and subtracting it rounds to the nearest integer and leaves that integer in the low bits.
const ROUNDER: f32 = 12_582_912.0; // 1.5 * 2^23

/// ln 2 in two parts; products of the first with integers below 2^15 are exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;

/// e^x within 2 units in the last place, subnormal results included; overflows to infinity, keeps NaN.
///
/// Cody and Waite's reduction x = k ln 2 + r with |r| <= ln 2 / 2, then the Taylor polynomial of degree 7 (relative error
/// below 6e-9). 2^k is multiplied in two halves so that it stays a normal number.
#[inline(always)]
pub(crate) fn exp<I: Instructions>(isa: I, x: f32) -> f32 {
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = isa.mul_add(x, std::f32::consts::LOG2_E, ROUNDER);
    let k = shifted - ROUNDER;
    let r = isa.mul_add(k, -LN_2_LOW, isa.mul_add(k, -LN_2_HIGH, x));
    let mut sum = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = isa.mul_add(sum, r, coefficient);
    }
    let k = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    let half = k >> 1;
    sum * power_of_two(half) * power_of_two(k.wrapping_sub(half))
}

/// 2^k for k from -126 to 127.
#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits(k.wrapping_add(127).cast_unsigned().wrapping_shl(23))
}

/// tanh x within 4 units in the last place.
///
/// Below 0.625 the fifth convergent of Lambert's continued fraction, x / (1 + x^2 / (3 + x^2 / (5 + ...))); above it
/// 1 - 2 / (e^2|x| + 1).
#[inline(always)]
pub(crate) fn tanh<I: Instructions>(isa: I, x: f32) -> f32 {
    let square = x * x;
    let above = isa.mul_add(isa.mul_add(square, 1.0, 105.0), square, 945.0);
    let below = isa.mul_add(isa.mul_add(square, 15.0, 420.0), square, 945.0);
    let near = x * (above / below);
    let far = 1.0 - 2.0 / (exp(isa, 2.0 * x.abs()) + 1.0);
    if x.abs() < 0.625 { near } else { far.copysign(x) }
}

/// 1 / (1 + e^-x) within 4 units in the last place, tiny results included.
#[inline(always)]
pub(crate) fn sigmoid<I: Instructions>(isa: I, x: f32) -> f32 {
    let e = exp(isa, -x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Isa, Kernel};

    #[derive(Clone, Copy)]
    enum Function {
        Exp,
        Tanh,
        Sigmoid,
    }

    struct Apply<'a>(Function, &'a mut [f32]);

    impl Kernel for Apply<'_> {
        type Output = ();

        #[inline(always)]
        fn run<I: Instructions>(self, isa: I) {
            for x in self.1 {
                *x = match self.0 {
                    Function::Exp => exp(isa, *x),
                    Function::Tanh => tanh(isa, *x),
                    Function::Sigmoid => sigmoid(isa, *x),
                };
            }
        }
    }

    /// The largest error in units of the last place of the exact result (at least the smallest subnormal).
    fn worst(function: Function, exact: fn(f64) -> f64, isa: Isa) -> f64 {
        let inputs: Vec<f32> = (-120_000..=120_000).map(|i| i as f32 * 0.000_91).collect();
        let mut outputs = inputs.clone();
        isa.run(Apply(function, &mut outputs));
        let error = |(&x, &y): (&f32, &f32)| {
            let exact = exact(f64::from(x));
            if exact > f64::from(f32::MAX) {
                assert_eq!(y, f32::INFINITY, "at {x}");
                return 0.0;
            }
            let next = f64::from((exact.abs() as f32).next_up()) - f64::from(exact.abs() as f32);
            (f64::from(y) - exact).abs() / next
        };
        inputs.iter().zip(&outputs).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_within_a_few_units_in_the_last_place() {
        for isa in [Isa::detect(), Isa::portable()] {
            assert!(worst(Function::Exp, f64::exp, isa) <= 2.0, "{isa:?}");
            assert!(worst(Function::Tanh, f64::tanh, isa) <= 4.0, "{isa:?}");
            assert!(worst(Function::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), isa) <= 4.0, "{isa:?}");
        }
    }

    #[test]
    fn special_values_are_kept() {
        for isa in [Isa::detect(), Isa::portable()] {
            let apply = |function, x: f32| {
                let mut value = [x];
                isa.run(Apply(function, &mut value));
                value[0]
            };
            assert!(apply(Function::Exp, f32::NAN).is_nan());
            assert_eq!(apply(Function::Exp, f32::INFINITY), f32::INFINITY);
            assert_eq!(apply(Function::Exp, f32::NEG_INFINITY), 0.0);
            assert_eq!(apply(Function::Exp, 0.0), 1.0);
            assert!(apply(Function::Tanh, f32::NAN).is_nan());
            assert_eq!(apply(Function::Tanh, f32::NEG_INFINITY), -1.0);
            assert_eq!(apply(Function::Tanh, -0.0).to_bits(), (-0.0f32).to_bits());
            assert!(apply(Function::Sigmoid, f32::NAN).is_nan());
            assert_eq!(apply(Function::Sigmoid, f32::INFINITY), 1.0);
            assert_eq!(apply(Function::Sigmoid, f32::NEG_INFINITY), 0.0);
        }
    }
}
