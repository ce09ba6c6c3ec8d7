//! The functions that ONNX allows in the gates of recurrent layers. Each is applied to whole rows of gates.

use crate::activation::{clip, relu};
use crate::isa::Instructions;
use crate::math;

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GateFunction {
    /// max(0, x).
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// alpha x + beta.
    Affine(f32, f32),
    /// x, below 0 alpha x.
    LeakyRelu(f32),
    /// x, below alpha 0.
    ThresholdedRelu(f32),
    /// alpha tanh(beta x).
    ScaledTanh(f32, f32),
    /// alpha x + beta, within 0 and 1.
    HardSigmoid(f32, f32),
    /// x, below 0 alpha (e^x - 1).
    Elu(f32),
    /// x / (1 + |x|).
    Softsign,
    /// ln(1 + e^x).
    Softplus,
}

impl GateFunction {
    #[inline(always)]
    pub(super) fn apply<I: Instructions>(self, isa: I, values: &mut [f32]) {
        match self {
            GateFunction::Sigmoid => each(values, |x| math::sigmoid(isa, x)),
            GateFunction::Tanh => each(values, |x| math::tanh(isa, x)),
            GateFunction::Relu => each(values, relu),
            GateFunction::Affine(alpha, beta) => each(values, |x| alpha * x + beta),
            GateFunction::LeakyRelu(alpha) => each(values, |x| if x < 0.0 { alpha * x } else { x }),
            GateFunction::ThresholdedRelu(alpha) => each(values, |x| if x < alpha { 0.0 } else { x }),
            GateFunction::ScaledTanh(alpha, beta) => each(values, |x| alpha * math::tanh(isa, beta * x)),
            GateFunction::HardSigmoid(alpha, beta) => each(values, |x| clip(alpha * x + beta, 0.0, 1.0)),
            GateFunction::Elu(alpha) => each(values, |x| if x < 0.0 { alpha * x.exp_m1() } else { x }),
            GateFunction::Softsign => each(values, |x| x / (1.0 + x.abs())),
            GateFunction::Softplus => each(values, |x| relu(x) + (-x.abs()).exp().ln_1p()),
        }
    }
}

#[inline(always)]
fn each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    for x in values {
        *x = function(*x);
    }
}
