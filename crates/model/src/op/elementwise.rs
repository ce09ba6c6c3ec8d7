//! Operations that work element by element, with numpy's broadcasting where there are several operands. They hold attributes and
//! nothing else.

use insula_core::DType;

/// Arithmetic of two tensors of one number type, whatever it is. Integers wrap around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b; integers towards zero, 0 where b is 0
    Div,
    /// a^b; integers lose the fraction
    Pow,
    /// The remainder of a / b with the sign of b.
    Mod,
    /// The remainder of a / b with the sign of a.
    Fmod,
    /// The larger; NaN if one is NaN.
    Max,
    /// The smaller; NaN if one is NaN.
    Min,
    /// a, or a * b where a is below 0.
    PRelu,
}

impl BinaryOp {
    /// The name as ONNX spells it.
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "Add",
            BinaryOp::Sub => "Sub",
            BinaryOp::Mul => "Mul",
            BinaryOp::Div => "Div",
            BinaryOp::Pow => "Pow",
            BinaryOp::Mod | BinaryOp::Fmod => "Mod",
            BinaryOp::Max => "Max",
            BinaryOp::Min => "Min",
            BinaryOp::PRelu => "PRelu",
        }
    }
}

/// A function of one float, of any width; also the end of a fused operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// max(x, 0); NaN stays.
    Relu,
    /// x, or `slope` x below 0.
    LeakyRelu {
        /// The slope below 0.
        slope: f32,
    },
    /// min(max(x, min), max); NaN stays. Infinite where ONNX leaves the bound out; `min > max` gives `max`.
    Clip {
        /// The lower bound.
        min: f32,
        /// The upper bound.
        max: f32,
    },
    /// 1 / (1 + exp(-x))
    Sigmoid,
    /// `alpha` x + `beta` within 0 and 1.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at 0.
        beta: f32,
    },
    /// x (x / 6 + 1/2), the factor within 0 and 1.
    HardSwish,
    /// x sigmoid(`alpha` x)
    Swish {
        /// The steepness.
        alpha: f32,
    },
    /// x (1 + erf(x / sqrt 2)) / 2
    Gelu,
    /// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
    GeluTanh,
    /// tanh(x)
    Tanh,
}

impl Activation {
    /// The name as ONNX spells it.
    pub fn name(self) -> &'static str {
        match self {
            Activation::Relu => "Relu",
            Activation::LeakyRelu { .. } => "LeakyRelu",
            Activation::Clip { .. } => "Clip",
            Activation::Sigmoid => "Sigmoid",
            Activation::HardSigmoid { .. } => "HardSigmoid",
            Activation::HardSwish => "HardSwish",
            Activation::Swish { .. } => "Swish",
            Activation::Gelu | Activation::GeluTanh => "Gelu",
            Activation::Tanh => "Tanh",
        }
    }
}

/// An operation element by element that is neither arithmetic of two tensors nor fused to others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Elementwise {
    /// A function of one number.
    Function(Function),
    /// Two tensors of one type, also BOOL, to BOOL.
    Compare(Comparison),
    /// Two tensors of one integer type or BOOL.
    Bitwise(Bitwise),
    /// Where the first, BOOL, is true the second, else the third; these have one type, whatever it is.
    Where,
    /// The same bits as another type of the same size.
    BitCast {
        /// The output's type.
        to: DType,
    },
}

impl Elementwise {
    /// The name as ONNX spells it.
    pub fn name(self) -> &'static str {
        match self {
            Elementwise::Function(function) => function.name(),
            Elementwise::Compare(comparison) => comparison.name(),
            Elementwise::Bitwise(bitwise) => bitwise.name(),
            Elementwise::Where => "Where",
            Elementwise::BitCast { .. } => "BitCast",
        }
    }

    /// How many inputs it takes.
    pub fn inputs(self) -> usize {
        match self {
            Elementwise::Function(_) | Elementwise::BitCast { .. } => 1,
            Elementwise::Compare(_) | Elementwise::Bitwise(_) => 2,
            Elementwise::Where => 3,
        }
    }
}

/// A function of one float, of any width; the first three of integers too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// |x|
    Abs,
    /// -x
    Neg,
    /// -1, 0 or 1
    Sign,
    /// e^x
    Exp,
    /// ln x
    Log,
    /// The square root.
    Sqrt,
    /// 1 / x
    Reciprocal,
    /// The error function.
    Erf,
    /// The next integer below.
    Floor,
    /// The next integer above.
    Ceil,
    /// The nearest integer, of two the even one.
    Round,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
    /// Tangent of radians.
    Tan,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
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
    fn name(self) -> &'static str {
        match self {
            Function::Abs => "Abs",
            Function::Neg => "Neg",
            Function::Sign => "Sign",
            Function::Exp => "Exp",
            Function::Log => "Log",
            Function::Sqrt => "Sqrt",
            Function::Reciprocal => "Reciprocal",
            Function::Erf => "Erf",
            Function::Floor => "Floor",
            Function::Ceil => "Ceil",
            Function::Round => "Round",
            Function::Sin => "Sin",
            Function::Cos => "Cos",
            Function::Tan => "Tan",
            Function::Asin => "Asin",
            Function::Acos => "Acos",
            Function::Atan => "Atan",
            Function::Sinh => "Sinh",
            Function::Cosh => "Cosh",
            Function::Asinh => "Asinh",
            Function::Acosh => "Acosh",
            Function::Atanh => "Atanh",
            Function::Elu { .. } => "Elu",
            Function::Softplus => "Softplus",
            Function::Softsign => "Softsign",
            Function::Mish => "Mish",
            Function::ThresholdedRelu { .. } => "ThresholdedRelu",
            Function::Shrink { .. } => "Shrink",
        }
    }
}

/// A comparison; one with NaN is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// a = b
    Equal,
    /// a < b
    Less,
    /// a <= b
    LessOrEqual,
    /// a > b
    Greater,
    /// a >= b
    GreaterOrEqual,
}

impl Comparison {
    fn name(self) -> &'static str {
        match self {
            Comparison::Equal => "Equal",
            Comparison::Less => "Less",
            Comparison::LessOrEqual => "LessOrEqual",
            Comparison::Greater => "Greater",
            Comparison::GreaterOrEqual => "GreaterOrEqual",
        }
    }
}

/// An operation on the bits of integers; the first three of truth values too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bitwise {
    /// a & b
    And,
    /// a | b
    Or,
    /// a ^ b
    Xor,
    /// a << b; 0 where b is negative or as many bits as there are
    ShiftLeft,
    /// a >> b, filled with the sign; nothing but that where b is negative or as many bits as there are
    ShiftRight,
}

impl Bitwise {
    fn name(self) -> &'static str {
        match self {
            Bitwise::And => "And",
            Bitwise::Or => "Or",
            Bitwise::Xor => "Xor",
            Bitwise::ShiftLeft | Bitwise::ShiftRight => "BitShift",
        }
    }
}
