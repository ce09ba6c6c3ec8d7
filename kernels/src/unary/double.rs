//! The functions of one number in double precision, for tensors of doubles and for functions of floats that no vector code
//! is written for. What the standard library has is its; the error function is made here.

use super::Function;
use crate::number::Scalar;

impl Function {
    /// The function of one double.
    pub(super) fn double(self, x: f64) -> f64 {
        match self {
            Function::Activation(activation) => activation.double(x),
            Function::Absolute => x.abs(),
            Function::Negate => -x,
            Function::Sign => x.sign(),
            Function::Exponential => x.exp(),
            Function::Logarithm => x.ln(),
            Function::SquareRoot => x.sqrt(),
            Function::Reciprocal => 1.0 / x,
            Function::ErrorFunction => erf_in_double(x),
            Function::Floor => x.floor(),
            Function::Ceiling => x.ceil(),
            Function::Round => x.round_ties_even(),
            Function::Sine => x.sin(),
            Function::Cosine => x.cos(),
            Function::Tangent => x.tan(),
            Function::ArcSine => x.asin(),
            Function::ArcCosine => x.acos(),
            Function::ArcTangent => x.atan(),
            Function::HyperbolicSine => x.sinh(),
            Function::HyperbolicCosine => x.cosh(),
            Function::AreaSine => x.asinh(),
            Function::AreaCosine => x.acosh(),
            Function::AreaTangent => x.atanh(),
            _ => self.activation(x),
        }
    }

    /// Those made for networks.
    fn activation(self, x: f64) -> f64 {
        match self {
            Function::Elu { scale, .. } if x > 0.0 => f64::from(scale) * x,
            Function::Elu { alpha, scale, divisor } => {
                f64::from(scale) * f64::from(alpha) * (x / f64::from(divisor)).exp_m1()
            }
            Function::Softplus => softplus(x),
            Function::Softsign => x / (1.0 + x.abs()),
            Function::Mish => x * softplus(x).tanh(),
            Function::ThresholdedRelu { threshold } => match x <= f64::from(threshold) {
                true => 0.0,
                false => x,
            },
            Function::Shrink { threshold, bias } => match f64::from(threshold) {
                threshold if x > threshold => x - f64::from(bias),
                threshold if x < -threshold => x + f64::from(bias),
                _ if x.is_nan() => x,
                _ => 0.0,
            },
            _ => x,
        }
    }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p() + if x.is_nan() { x } else { 0.0 }
}

/// The error function to about 1e-15: below 3 the series 2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...), whose
/// terms are all positive; from there on 1 less Legendre's continued fraction e^(-x^2) / sqrt(pi) / (x + 1/2 / (x + 1 / (x + ...))).
pub(crate) fn erf_in_double(x: f64) -> f64 {
    let (size, root) = (x.abs(), std::f64::consts::PI.sqrt());
    if x.is_nan() || size > 6.0 {
        return if x.is_nan() { x } else { 1f64.copysign(x) };
    }
    let bell = (-size * size).exp();
    if size < 3.0 {
        let (mut term, mut sum, mut odd) = (size, size, 1.0);
        while term > sum * f64::EPSILON / 4.0 {
            odd += 2.0;
            term *= 2.0 * size * size / odd;
            sum += term;
        }
        return (2.0 / root * bell * sum).copysign(x);
    }
    let fraction = (1..=60).rev().fold(size, |rest, k| size + f64::from(k) / 2.0 / rest);
    (1.0 - bell / root / fraction).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_has_its_known_values() {
        // Abramowitz and Stegun, table 7.1
        let known = [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
        ];
        for (x, erf) in known {
            assert!((erf_in_double(x) - erf).abs() < 2e-15, "{x}");
            assert_eq!(erf_in_double(-x), -erf_in_double(x));
        }
        assert!((erf_in_double(3f64.next_down()) - erf_in_double(3.0)).abs() < 1e-15);
        assert!(erf_in_double(f64::NAN).is_nan());
    }
}
