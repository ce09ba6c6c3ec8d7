//! Recurrent layers as ONNX defines them, with all their directions in one operation. It holds attributes and nothing else.

use smallvec::SmallVec;

/// A recurrent layer.
///
/// Inputs: `[T, B, I]`, W `[D, G H, I]`, R `[D, G H, H]`, and after them those of [`RecurrentInputs`] that are there. Output:
/// the outputs of all steps and behind them the last states, `[T + S, D, B, H]`; S is 2 for an LSTM (the state, then the cell),
/// else 1. With `batch_first` the input is `[B, T, I]`, initial states are `[B, D, H]` and the output is `[B, T + S, D, H]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrent {
    /// What a step computes.
    pub cell: RecurrentCell,
    /// D: 1 or 2.
    pub directions: SmallVec<[RecurrentDirection; 2]>,
    /// Whether sequences and not steps are the outermost axis.
    pub batch_first: bool,
    /// The largest magnitude of what goes into the functions of gates.
    pub clip: Option<f32>,
    /// Which further inputs there are.
    pub inputs: RecurrentInputs,
}

/// What a step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecurrentCell {
    /// One gate: the state itself.
    Plain,
    /// Update, reset and candidate.
    Gru {
        /// Whether the reset gate is applied after the candidate's product instead of before it.
        linear_before_reset: bool,
    },
    /// Input, output, forget and candidate.
    Lstm {
        /// Whether the forget gate is one minus the input gate.
        input_forget: bool,
    },
}

impl RecurrentCell {
    /// G.
    pub fn gates(self) -> usize {
        match self {
            RecurrentCell::Plain => 1,
            RecurrentCell::Gru { .. } => 3,
            RecurrentCell::Lstm { .. } => 4,
        }
    }

    /// S.
    pub fn last_states(self) -> usize {
        if matches!(self, RecurrentCell::Lstm { .. }) { 2 } else { 1 }
    }

    /// The operator's name in ONNX.
    pub fn name(self) -> &'static str {
        match self {
            RecurrentCell::Plain => "RNN",
            RecurrentCell::Gru { .. } => "GRU",
            RecurrentCell::Lstm { .. } => "LSTM",
        }
    }
}

/// One direction of a recurrent layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecurrentDirection {
    /// Whether it begins with a sequence's last step.
    pub reverse: bool,
    /// f, g and h of ONNX's definitions; what the cell does not have is not looked at.
    pub functions: [GateFunction; 3],
}

/// The inputs after the third, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RecurrentInputs {
    /// `[D, 2 G H]`: of the input's product, then of the state's.
    pub bias: bool,
    /// INT32 `[B]`: the length of each sequence.
    pub lengths: bool,
    /// The initial states.
    pub hidden: bool,
    /// The initial cells of an LSTM.
    pub cell: bool,
    /// `[D, 3 H]`: weights of an LSTM's cell in its input, output and forget gates.
    pub peepholes: bool,
}

/// A function of one value in a gate.
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
