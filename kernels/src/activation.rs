//! Functions of one value that follow a linear layer and can be fused into it. Each keeps NaN. The epilogues of matrix
//! products and convolutions apply them; the unary kernel offers them on their own.

use crate::isa::Instructions;
use crate::math;

/// What happens to each sum before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// max(0, x).
    Relu,
    /// Not below `min`, not above `max`.
    Clip {
        /// The least value.
        min: f32,
        /// The greatest value; it wins when it lies below `min`.
        max: f32,
    },
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Applies the function to all `values`.
    #[inline(always)]
    pub(crate) fn apply<I: Instructions>(self, isa: I, values: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Relu => {
                for x in values {
                    *x = relu(*x);
                }
            }
            Activation::Clip { min, max } => {
                for x in values {
                    *x = clip(*x, min, max);
                }
            }
            Activation::Sigmoid => {
                for x in values {
                    *x = math::sigmoid(isa, *x);
                }
            }
            Activation::Tanh => {
                for x in values {
                    *x = math::tanh(isa, *x);
                }
            }
        }
    }

    /// The bounds of a function that is nothing but bounds: `None`, `Relu` and `Clip`.
    pub(crate) fn bounds(self) -> Option<(f32, f32)> {
        match self {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clip { min, max } => Some((min, max)),
            Activation::Sigmoid | Activation::Tanh => None,
        }
    }
}

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
