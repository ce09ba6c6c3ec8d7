//! Functions of one value that follow a linear layer and can be fused into it. Each keeps NaN. The epilogues of matrix
//! products and convolutions apply them; the unary kernel offers them on their own, in double precision too.

use crate::isa::{Instructions, Kernel};
use crate::math;

/// What happens to each sum before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// max(0, x).
    Relu,
    /// x, or `slope` x below 0.
    LeakyRelu {
        /// The slope below 0.
        slope: f32,
    },
    /// Not below `min`, not above `max`.
    Clip {
        /// The least value.
        min: f32,
        /// The greatest value; it wins when it lies below `min`.
        max: f32,
    },
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// `alpha` x + `beta`, not below 0, not above 1.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at 0.
        beta: f32,
    },
    /// x (x / 6 + 1/2), the factor not below 0, not above 1.
    HardSwish,
    /// x / (1 + e^(-`alpha` x)).
    Swish {
        /// The steepness.
        alpha: f32,
    },
    /// x (1 + erf(x / sqrt 2)) / 2.
    Gelu,
    /// Its approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
    GeluTanh,
    /// Hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Applies the function to all `values`.
    #[inline(always)]
    pub(crate) fn apply<I: Instructions>(self, isa: I, values: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Relu => each(values, relu),
            Activation::LeakyRelu { slope } => each(values, |x| if x < 0.0 { slope * x } else { x }),
            Activation::Clip { min, max } => each(values, |x| clip(x, min, max)),
            Activation::HardSigmoid { alpha, beta } => each(values, |x| clip(isa.mul_add(alpha, x, beta), 0.0, 1.0)),
            Activation::HardSwish => each(values, |x| x * clip(isa.mul_add(1.0 / 6.0, x, 0.5), 0.0, 1.0)),
            Activation::Sigmoid
            | Activation::Swish { .. }
            | Activation::Gelu
            | Activation::GeluTanh
            | Activation::Tanh => isa.call(Smooth { activation: self, values }),
        }
    }

    /// The bounds of a function that is nothing but bounds: `None`, `Relu` and `Clip`.
    pub(crate) fn bounds(self) -> Option<(f32, f32)> {
        match self {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clip { min, max } => Some((min, max)),
            _ => None,
        }
    }

    /// The function in double precision.
    pub(crate) fn double(self, x: f64) -> f64 {
        let (clip, sigmoid) = (clip_double, |x: f64| 1.0 / (1.0 + (-x).exp()));
        match self {
            Activation::None => x,
            Activation::Relu => clip(x, 0.0, f64::INFINITY),
            Activation::LeakyRelu { slope } if x < 0.0 => f64::from(slope) * x,
            Activation::LeakyRelu { .. } => x,
            Activation::Clip { min, max } => clip(x, f64::from(min), f64::from(max)),
            Activation::Sigmoid => sigmoid(x),
            Activation::HardSigmoid { alpha, beta } => clip(f64::from(alpha) * x + f64::from(beta), 0.0, 1.0),
            Activation::HardSwish => x * clip(x / 6.0 + 0.5, 0.0, 1.0),
            Activation::Swish { alpha } => x * sigmoid(f64::from(alpha) * x),
            Activation::Gelu => 0.5 * x * (1.0 + crate::unary::erf_in_double(x * std::f64::consts::FRAC_1_SQRT_2)),
            Activation::GeluTanh => {
                let inner = (2.0 * std::f64::consts::FRAC_1_PI).sqrt() * (x + 0.044715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            Activation::Tanh => x.tanh(),
        }
    }
}

#[inline(always)]
fn each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    for x in values {
        *x = function(*x);
    }
}

/// The functions that take an exponential: called, not repeated in every epilogue.
struct Smooth<'a> {
    activation: Activation,
    values: &'a mut [f32],
}

impl Kernel for Smooth<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        match self.activation {
            Activation::Sigmoid => each(self.values, |x| math::sigmoid(isa, x)),
            Activation::Swish { alpha } => each(self.values, |x| x * math::sigmoid(isa, alpha * x)),
            Activation::Gelu => each(self.values, |x| {
                let half = 0.5 * x;
                isa.mul_add(half, math::erf(isa, x * std::f32::consts::FRAC_1_SQRT_2), half)
            }),
            Activation::GeluTanh => each(self.values, |x| {
                let inner = ROOT_2_OVER_PI * isa.mul_add(0.044715 * x * x, x, x);
                let half = 0.5 * x;
                isa.mul_add(half, math::tanh(isa, inner), half)
            }),
            _ => each(self.values, |x| math::tanh(isa, x)),
        }
    }
}

/// sqrt(2 / pi).
const ROOT_2_OVER_PI: f32 = 0.797_884_6;

/// max(0, x) as the vector instruction has it: NaN and both zeros come through.
#[inline(always)]
pub(crate) fn relu(x: f32) -> f32 {
    if 0.0 > x { 0.0 } else { x }
}

/// Clamps without refusing `min` > `max`; NaN comes through.
#[inline(always)]
pub(crate) fn clip(x: f32, min: f32, max: f32) -> f32 {
    let x = if min > x { min } else { x };
    if max < x { max } else { x }
}

fn clip_double(x: f64, min: f64, max: f64) -> f64 {
    let x = if min > x { min } else { x };
    if max < x { max } else { x }
}
