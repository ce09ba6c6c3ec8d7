//! Functions of one tensor, element by element, in its own type: floats of any width, and what integers have (absolute value,
//! negation, sign). Halves and bfloat16 compute in single precision and round once. Every element's bits depend on it alone.

mod double;

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};

use crate::activation::Activation;
use crate::float::{CHUNK, Widened};
use crate::isa::{Instructions, Isa, Kernel};
use crate::math;
use crate::number::{Number, Scalar, with_type};
pub(crate) use double::erf_in_double;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// One that can also be fused.
    Activation(Activation),
    /// |x|; integers too.
    Absolute,
    /// -x; integers too.
    Negate,
    /// -1, 0 or 1; integers too.
    Sign,
    /// e^x
    Exponential,
    /// ln x
    Logarithm,
    /// The square root.
    SquareRoot,
    /// 1 / x
    Reciprocal,
    /// The error function.
    ErrorFunction,
    /// The next integer below.
    Floor,
    /// The next integer above.
    Ceiling,
    /// The nearest integer, of two the even one.
    Round,
    /// Sine of radians.
    Sine,
    /// Cosine of radians.
    Cosine,
    /// Tangent of radians.
    Tangent,
    /// Inverse sine.
    ArcSine,
    /// Inverse cosine.
    ArcCosine,
    /// Inverse tangent.
    ArcTangent,
    /// Hyperbolic sine.
    HyperbolicSine,
    /// Hyperbolic cosine.
    HyperbolicCosine,
    /// Inverse hyperbolic sine.
    AreaSine,
    /// Inverse hyperbolic cosine.
    AreaCosine,
    /// Inverse hyperbolic tangent.
    AreaTangent,
    /// `scale` x, below 0 `scale` `alpha` (e^(x / `divisor`) - 1): Elu, Selu and Celu.
    Elu {
        /// The limit at negative infinity, before scaling.
        alpha: f32,
        /// Applied to both sides.
        scale: f32,
        /// Stretches the exponential.
        divisor: f32,
    },
    /// ln(1 + e^x)
    Softplus,
    /// x / (1 + |x|)
    Softsign,
    /// x tanh(ln(1 + e^x))
    Mish,
    /// x above `threshold`, else 0.
    ThresholdedRelu {
        /// The threshold.
        threshold: f32,
    },
    /// x - `bias` above `threshold`, x + `bias` below -`threshold`, else 0.
    Shrink {
        /// The threshold.
        threshold: f32,
        /// What moves towards 0.
        bias: f32,
    },
}

impl Function {
    /// Whether [`apply`] has the function for `number`.
    pub fn is_for(self, number: Number) -> bool {
        match number {
            Number::Bool => false,
            Number::F16 | Number::Bf16 | Number::F32 | Number::F64 => true,
            _ => matches!(self, Function::Absolute | Function::Negate | Function::Sign),
        }
    }
}

/// Applies `function` to `input` into `out`, both elements of type `number` and aligned for it.
///
/// # Panics
///
/// When alignment or numbers of elements do not fit, or the type does not have the function: a defect of the caller.
pub fn apply(isa: Isa, function: Function, number: Number, input: &[u8], out: &mut [u8]) {
    assert!(function.is_for(number), "{number:?} has no {function:?}");
    assert_eq!(input.len(), out.len(), "a function of one tensor keeps the number of elements");
    match number {
        Number::F16 => isa.run(Apply::<f16> { function, input: cast_slice(input), out: cast_slice_mut(out) }),
        Number::Bf16 => isa.run(Apply::<bf16> { function, input: cast_slice(input), out: cast_slice_mut(out) }),
        Number::F32 => isa.run(Apply::<f32> { function, input: cast_slice(input), out: cast_slice_mut(out) }),
        Number::F64 => map::<f64>(cast_slice(input), cast_slice_mut(out), |x| function.double(x)),
        _ => with_type!(number, T => integers::<T>(function, cast_slice(input), cast_slice_mut(out))),
    }
}

fn map<T: Copy>(input: &[T], out: &mut [T], function: impl Fn(T) -> T) {
    for (out, x) in out.iter_mut().zip(input) {
        *out = function(*x);
    }
}

fn integers<T: Scalar>(function: Function, input: &[T], out: &mut [T]) {
    match function {
        Function::Absolute => map(input, out, T::magnitude),
        Function::Negate => map(input, out, |x| T::ZERO.minus(x)),
        _ => map(input, out, T::sign),
    }
}

struct Apply<'a, E> {
    function: Function,
    input: &'a [E],
    out: &'a mut [E],
}

impl<E: Widened> Kernel for Apply<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        for (input, out) in self.input.chunks(CHUNK).zip(self.out.chunks_mut(CHUNK)) {
            let mut wide = [0.0; CHUNK];
            let wide = &mut wide[..input.len()];
            E::widen(isa, input, wide);
            isa.call(Single { function: self.function, values: wide });
            E::narrow(isa, wide, out);
        }
    }
}

/// A function of floats in place.
struct Single<'a> {
    function: Function,
    values: &'a mut [f32],
}

impl Kernel for Single<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let values = self.values;
        match self.function {
            Function::Activation(activation) => activation.apply(isa, values),
            Function::Absolute => each(values, f32::abs),
            Function::Negate => each(values, |x| -x),
            Function::Sign => each(values, f32::sign),
            Function::Exponential => each(values, |x| math::exp(isa, x)),
            Function::Logarithm => each(values, |x| math::log(isa, x)),
            Function::SquareRoot => each(values, f32::sqrt),
            Function::Reciprocal => each(values, |x| 1.0 / x),
            Function::ErrorFunction => each(values, |x| math::erf(isa, x)),
            Function::Floor => each(values, f32::floor),
            Function::Ceiling => each(values, f32::ceil),
            Function::Round => each(values, f32::round_ties_even),
            Function::Softplus => each(values, |x| math::softplus(isa, x)),
            Function::Softsign => each(values, |x| x / (1.0 + x.abs())),
            Function::Mish => each(values, |x| mish(isa, x)),
            Function::Elu { alpha, scale, divisor } => each(values, |x| {
                let below = scale * alpha * math::exp_minus_1(isa, x / divisor);
                if x > 0.0 { scale * x } else { below }
            }),
            other => each(values, |x| other.double(f64::from(x)) as f32),
        }
    }
}

#[inline(always)]
fn each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    for x in values {
        *x = function(*x);
    }
}

/// With e = e^x the hyperbolic tangent of ln(1 + e) is e (e + 2) / (e (e + 2) + 2); beyond 20 it is 1.
#[inline(always)]
fn mish<I: Instructions>(isa: I, x: f32) -> f32 {
    let e = math::exp(isa, if x > 20.0 { 20.0 } else { x });
    let n = e * (e + 2.0);
    x * (n / (n + 2.0))
}
