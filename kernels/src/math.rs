//! Exponential, logarithm, error function and their kin in single precision, as plain arithmetic that the compiler can run
//! on eight lanes at once. One source for vectors and their tails: a value gives the same bits wherever in a tensor
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

/// e^x - 1 within 2 units in the last place for x up to 0; larger ones are taken as 0. Keeps NaN.
///
/// The same reduction as [`exp`]; the polynomial leaves out the 1, which is added after the scaling.
#[inline(always)]
pub(crate) fn exp_minus_1<I: Instructions>(isa: I, x: f32) -> f32 {
    let x = if x < -80.0 { -80.0 } else { x };
    let x = if x > 0.0 { 0.0 } else { x };
    let shifted = isa.mul_add(x, std::f32::consts::LOG2_E, ROUNDER);
    let k = shifted - ROUNDER;
    let r = isa.mul_add(k, -LN_2_LOW, isa.mul_add(k, -LN_2_HIGH, x));
    let mut sum = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        sum = isa.mul_add(sum, r, coefficient);
    }
    let less_one = isa.mul_add(sum * r, r, r);
    let scale = power_of_two(shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed());
    isa.mul_add(scale, less_one, scale - 1.0)
}

/// ln x within 2 units in the last place, subnormal x included; negative infinity at 0, NaN below.
///
/// x = 2^k m with m from sqrt(1/2) to sqrt(2), then the series of 2 artanh((m - 1) / (m + 1)).
#[inline(always)]
pub(crate) fn log<I: Instructions>(isa: I, x: f32) -> f32 {
    let (normal, lifted) = if x < f32::MIN_POSITIVE { (x * 8_388_608.0, -23.0) } else { (x, 0.0) };
    let bits = normal.to_bits();
    let exponent = bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits()).cast_signed() >> 23;
    let m = f32::from_bits(bits.wrapping_sub(exponent.cast_unsigned() << 23));
    let k = exponent as f32 + lifted;
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = 2.0 / 11.0;
    for coefficient in [2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0] {
        sum = isa.mul_add(sum, square, coefficient);
    }
    let low = isa.mul_add(k, LN_2_LOW, s * square * sum);
    let result = isa.mul_add(k, LN_2_HIGH, isa.mul_add(2.0, s, low));
    let result = if x < f32::INFINITY { result } else { x };
    let result = if x == 0.0 { f32::NEG_INFINITY } else { result };
    if x < 0.0 { f32::NAN } else { result }
}

/// ln(1 + y) within 3 units in the last place for y from 0 to 1.
#[inline(always)]
pub(crate) fn log_plus_1<I: Instructions>(isa: I, y: f32) -> f32 {
    let sum = 1.0 + y;
    let lost = y - (sum - 1.0);
    log(isa, sum) + lost / sum
}

/// erf(x) / x as a polynomial in x^2 for |x| up to 1, lowest first: relative error below 1.3e-9.
const ERF_NEAR: [f32; 7] = [
    std::f32::consts::FRAC_2_SQRT_PI,
    -0.376_126_26,
    0.112_835_854,
    -0.026_853_811,
    0.005_188_327_7,
    -0.000_801_019_25,
    7.853_858e-5,
];

/// -ln(1 - erf(x)) as a polynomial in x from 1 to 4, lowest first: the error function's absolute error is below 2e-11.
const ERF_FAR: [f32; 8] = [
    -0.000_188_040_23,
    1.129_578_5,
    0.633_219_9,
    0.108_418_58,
    -0.025_208_257,
    0.004_204_562,
    -0.000_441_336_36,
    2.168_685e-5,
];

/// The error function within 3 units in the last place. Both polynomials are weighted least squares with the weights
/// moved towards the largest error (Lawson) until it was level.
#[inline(always)]
pub(crate) fn erf<I: Instructions>(isa: I, x: f32) -> f32 {
    let size = x.abs();
    let square = x * x;
    let [near @ .., mut low] = ERF_NEAR;
    for coefficient in near.into_iter().rev() {
        low = isa.mul_add(low, square, coefficient);
    }
    let capped = if size > 4.0 { 4.0 } else { size };
    let [far @ .., mut high] = ERF_FAR;
    for coefficient in far.into_iter().rev() {
        high = isa.mul_add(high, capped, coefficient);
    }
    let far = (1.0 - exp(isa, -high)).copysign(x);
    if size < 1.0 { x * low } else { far }
}

/// ln(1 + e^x) without overflow.
#[inline(always)]
pub(crate) fn softplus<I: Instructions>(isa: I, x: f32) -> f32 {
    let linear = if x > 0.0 { x } else { 0.0 };
    linear + log_plus_1(isa, exp(isa, -x.abs()))
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
        Log,
        LogPlus1,
        ExpMinus1,
        Erf,
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
                    Function::Log => log(isa, *x),
                    Function::LogPlus1 => log_plus_1(isa, *x),
                    Function::ExpMinus1 => exp_minus_1(isa, *x),
                    Function::Erf => erf(isa, *x),
                };
            }
        }
    }

    /// The largest error in units of the last place of the exact result (at least the smallest subnormal).
    fn worst(function: Function, exact: fn(f64) -> f64, isa: Isa) -> f64 {
        worst_of(function, exact, isa, -109.2, 109.2)
    }

    fn worst_of(function: Function, exact: fn(f64) -> f64, isa: Isa, from: f32, to: f32) -> f64 {
        let step = (to - from) / 240_000.0;
        let inputs: Vec<f32> = (0..=240_000).map(|i| from + i as f32 * step).collect();
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
    fn logarithms_and_small_exponentials_are_within_a_few_units() {
        for isa in [Isa::detect(), Isa::portable()] {
            for (from, to) in [(1e-44, 1e-36), (1e-6, 1e-3), (0.5, 2.0), (1.0, 1e4), (1e30, 3e38)] {
                assert!(worst_of(Function::Log, f64::ln, isa, from, to) <= 2.0, "{isa:?} from {from}");
            }
            assert!(worst_of(Function::LogPlus1, f64::ln_1p, isa, 0.0, 1.0) <= 3.0, "{isa:?}");
            assert!(worst_of(Function::LogPlus1, f64::ln_1p, isa, 0.0, 1e-6) <= 3.0, "{isa:?}");
            for from in [-1e-5, -0.5, -3.0, -100.0] {
                assert!(worst_of(Function::ExpMinus1, f64::exp_m1, isa, from, 0.0) <= 3.0, "{isa:?} from {from}");
            }
        }
    }

    #[test]
    fn the_error_function_is_within_a_few_units() {
        for isa in [Isa::detect(), Isa::portable()] {
            for (from, to) in [(-1e-3, 1e-3), (-1.0, 1.0), (-6.0, 6.0)] {
                let worst = worst_of(Function::Erf, crate::unary::erf_in_double, isa, from, to);
                assert!(worst <= 3.0, "{isa:?} from {from}: {worst}");
            }
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
            assert!(apply(Function::Log, f32::NAN).is_nan() && apply(Function::Log, -1.0).is_nan());
            assert_eq!(apply(Function::Log, 0.0), f32::NEG_INFINITY);
            assert_eq!(apply(Function::Log, f32::INFINITY), f32::INFINITY);
            assert_eq!(apply(Function::Log, 1.0), 0.0);
            assert!(apply(Function::Erf, f32::NAN).is_nan() && apply(Function::ExpMinus1, f32::NAN).is_nan());
            assert_eq!(apply(Function::Erf, f32::INFINITY), 1.0);
            assert_eq!(apply(Function::Erf, f32::NEG_INFINITY), -1.0);
            assert_eq!(apply(Function::ExpMinus1, f32::NEG_INFINITY), -1.0);
            assert!(apply(Function::Tanh, f32::NAN).is_nan());
            assert_eq!(apply(Function::Tanh, f32::NEG_INFINITY), -1.0);
            assert_eq!(apply(Function::Tanh, -0.0).to_bits(), (-0.0f32).to_bits());
            assert!(apply(Function::Sigmoid, f32::NAN).is_nan());
            assert_eq!(apply(Function::Sigmoid, f32::INFINITY), 1.0);
            assert_eq!(apply(Function::Sigmoid, f32::NEG_INFINITY), 0.0);
        }
    }
}
