//! The closed list of operations that a device implements, with typed attributes. It holds no tensors and no shapes.
//!
//! Shape of the contract: every tensor is row-major in its stated shape and every operation has one output. The
//! reader turns ONNX operators into these: axes are resolved to 0..rank, padding is explicit, channels come last. So
//! * convolutions and poolings take and give `[N, spatial.., C]` with one to three spatial axes; a `Conv`'s second input is the
//!   weight as ONNX has it, `[M, C / groups, kernel..]`, and it has no bias input (that is an
//!   [`Epilogue`](crate::plan::Epilogue)'s);
//! * Gemm is `MatMul` (with what it needs around it), GlobalAveragePool is a `Reduce`, BatchNormalization is part of a
//!   `Conv`'s weights or a `Mul` with a bias, Softmax before opset 13 is a `Softmax` between two views;
//! * Identity, Dropout, Flatten, Reshape, Squeeze and Unsqueeze are views and never reach a device; Split is slices, Tile and
//!   ConstantOfShape are `Expand`, Resize is an operation for each axis.
//!
//! Products and windows take FP32 and FP16 (FP16: stored in half, computed and accumulated in f32), what works element by
//! element or along axes takes more, as each says; the inputs of one operation have one type and the output has it too, where
//! nothing else is said. `Transpose` and `Move` take every type.

pub mod elementwise;
pub mod movement;
pub mod recurrent;
pub mod reduction;
pub mod sampling;
pub mod window;

use insula_core::DType;
use smallvec::SmallVec;

pub use elementwise::{Activation, BinaryOp, Bitwise, Comparison, Elementwise, Function};
pub use movement::Movement;
pub use recurrent::{GateFunction, Recurrent, RecurrentCell, RecurrentDirection, RecurrentInputs};
pub use reduction::{ArgExtreme, Cumulative, Reduce, Reduction};
pub use sampling::Sampling;
pub use window::{ConvTranspose, DeformConv, LpPool, MaxPositions};

/// Axes of a tensor, each below its rank.
pub type Axes = SmallVec<[usize; 4]>;

/// What a device is asked to compute.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Cross-correlation, of INT32 (wrapping around) and FP64 too. Inputs: `[N, spatial.., C]`, weight `[M, C / groups, kernel..]`. Output `[N, spatial.., M]`. Padding is
    /// zeros.
    Conv(Conv),
    /// Transposed convolution. Inputs: `[N, spatial.., C]`, weight `[C, M / groups, kernel..]`. Output `[N, spatial.., M]`.
    ConvTranspose(ConvTranspose),
    /// Convolution with moved taps. Inputs: `[N, H, W, C]`, weight `[M, C / groups, kH, kW]`, how far each tap is moved down and
    /// to the right `[N, oH, oW, offset groups * kH * kW * 2]` and, if there, what each sample is multiplied with
    /// `[N, oH, oW, offset groups * kH * kW]`. Output `[N, oH, oW, M]`.
    DeformConv(DeformConv),
    /// The largest element of each window, never of the padding. `[N, spatial.., C]` to the same rank.
    MaxPool(Window),
    /// The mean of each window. `[N, spatial.., C]` to the same rank.
    AveragePool(AveragePool),
    /// The p-norm of each window. `[N, spatial.., C]` to the same rank.
    LpPool(LpPool),
    /// Where in the whole tensor, counted as `[N, C, spatial..]`, the largest element of each window lies: INT64, the first of
    /// equals. Rows meet in it, so there is no batch.
    MaxPositions(MaxPositions),
    /// A recurrent layer.
    Recurrent(Recurrent),
    /// Matrix product as numpy has it, both inputs at least 2-D: `[.., M, K] x [.., K, N]` gives `[.., M, N]`, the leading
    /// dimensions broadcast; of INT32, INT64, UINT32, UINT64 (wrapping around) and FP64 too. With a 2-D second input all leading dimensions of the first are rows.
    MatMul,
    /// Element by element with numpy's broadcasting.
    Binary(BinaryOp),
    /// Element by element.
    Activation(Activation),
    /// Element by element, whatever is not one of these two.
    Elementwise(Elementwise),
    /// exp(x - max) / sum(exp(x - max)) along `axis`, or the logarithm of it. FP32 and FP16.
    Softmax {
        /// The axis that is normalised.
        axis: usize,
        /// Whether the logarithm is taken.
        logarithm: bool,
    },
    /// (x - mean) / sqrt(variance + `epsilon`) along the last axis, then times the second input and plus the third, where they
    /// are there: vectors of the last dimension. FP32 and FP16.
    Normalize {
        /// Whether the mean is subtracted; else the mean square stands for the variance.
        centred: bool,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Many elements to one.
    Reduce(Reduce),
    /// The position of an extreme.
    ArgExtreme(ArgExtreme),
    /// Running sums and products.
    Cumulative(Cumulative),
    /// Output axis `i` is input axis `permutation[i]`.
    Transpose {
        /// A permutation of 0..rank.
        permutation: Axes,
    },
    /// Moves elements, whatever their type.
    Move(Movement),
    /// Reads images between their pixels.
    Sample(Sampling),
    /// Conversion between any types but BYTES. Floats to integers truncate towards zero and saturate, NaN gives 0; wider
    /// integers to narrower ones keep the low bits; what is not zero is true.
    Cast {
        /// The output's type.
        to: DType,
    },
}

/// Zeros (or nothing) around the image, in pixels along depth, height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pads {
    /// In front of the first pixel.
    pub before: [usize; 3],
    /// Behind the last pixel.
    pub after: [usize; 3],
}

/// A window that slides over an image's one to three spatial axes. Triples are `[depth, height, width]`; an image with fewer
/// axes has the last ones, and the others are 1 (padding 0).
///
/// Output pixel `o` covers input pixels `o * stride + i * dilation - pad` for `i` in `0..kernel`. The output has
/// `(size + pads - ((kernel - 1) * dilation + 1)) / stride + 1` pixels (ONNX's `ceil_mode` has become more padding behind the
/// image), so every window lies within the padded image; a pooling's windows each hold at least one pixel of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The window's size, each at least 1.
    pub kernel: [usize; 3],
    /// Step from window to window, each at least 1.
    pub strides: [usize; 3],
    /// Step from element to element in a window, each at least 1.
    pub dilations: [usize; 3],
    /// Padding.
    pub pads: Pads,
}

/// Attributes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv {
    /// The kernel's window.
    pub window: Window,
    /// Output channel `m` sees the input channels of group `m / (M / groups)` alone. Depthwise when it equals C.
    pub groups: usize,
}

/// Attributes of an average pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AveragePool {
    /// The window.
    pub window: Window,
    /// The divisor: the window's elements inside the padded image (`true`), or those inside the image (`false`).
    pub count_include_pad: bool,
    /// How much of the padding behind the image `ceil_mode` has added: it never counts.
    pub overhang: [usize; 3],
}

impl Op {
    /// The operation's name as ONNX spells it, for messages and profiles.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Conv(_) => "Conv",
            Op::ConvTranspose(_) => "ConvTranspose",
            Op::DeformConv(_) => "DeformConv",
            Op::LpPool(_) => "LpPool",
            Op::MaxPool(_) | Op::MaxPositions(_) => "MaxPool",
            Op::Recurrent(layer) => layer.cell.name(),
            Op::AveragePool(_) => "AveragePool",
            Op::MatMul => "MatMul",
            Op::Binary(op) => op.name(),
            Op::Activation(activation) => activation.name(),
            Op::Elementwise(op) => op.name(),
            Op::Softmax { logarithm: false, .. } => "Softmax",
            Op::Softmax { logarithm: true, .. } => "LogSoftmax",
            Op::Normalize { centred: true, .. } => "LayerNormalization",
            Op::Normalize { centred: false, .. } => "RMSNormalization",
            Op::Reduce(reduce) => reduce.reduction.name(),
            Op::ArgExtreme(ArgExtreme { largest: true, .. }) => "ArgMax",
            Op::ArgExtreme(ArgExtreme { largest: false, .. }) => "ArgMin",
            Op::Cumulative(Cumulative { product: false, .. }) => "CumSum",
            Op::Cumulative(Cumulative { product: true, .. }) => "CumProd",
            Op::Transpose { .. } => "Transpose",
            Op::Move(movement) => movement.name(),
            Op::Sample(sampling) => sampling.name(),
            Op::Cast { .. } => "Cast",
        }
    }
}
