//! The closed list of operations that a device implements, with typed attributes. It holds no tensors and no shapes.
//!
//! Shape of the contract: every tensor is row-major in its stated shape and every operation has one output. The
//! reader turns ONNX operators into these: axes are resolved to 0..rank, padding is explicit, channels come last. So
//! * `Conv`, `MaxPool`, `AveragePool` take and give `[N, H, W, C]`; a `Conv`'s second input is the weight as ONNX has it,
//!   `[M, C / groups, kH, kW]`, always a constant, and it has no bias input (that is an [`Epilogue`](crate::plan::Epilogue)'s);
//! * Gemm is `MatMul` (with what it needs around it), GlobalAveragePool is `ReduceMean`, BatchNormalization is part of a
//!   `Conv`'s weights or a `Mul` with a bias, Softmax before opset 13 is a `Softmax` between two views;
//! * Identity, Dropout, Flatten, Reshape, Squeeze and Unsqueeze are views and never reach a device.
//!
//! Arithmetic types are FP32 and FP16 (FP16: stored in half, computed and accumulated in f32); the inputs of one operation
//! have one type, the output has it too, except for `Cast` and `ArgMax`.

use insula_core::DType;
use smallvec::SmallVec;

/// Axes of a tensor, each below its rank.
pub type Axes = SmallVec<[usize; 4]>;

/// What a device is asked to compute.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// 2-D cross-correlation. Inputs: `[N, H, W, C]`, weight `[M, C / groups, kH, kW]`. Output `[N, oH, oW, M]`. Padding is zeros.
    Conv(Conv),
    /// The largest element of each window, never of the padding. `[N, H, W, C]` to `[N, oH, oW, C]`.
    MaxPool(Window),
    /// The mean of each window. `[N, H, W, C]` to `[N, oH, oW, C]`.
    AveragePool(AveragePool),
    /// Matrix product as numpy has it, both inputs at least 2-D: `[.., M, K] x [.., K, N]` gives `[.., M, N]`, the leading
    /// dimensions broadcast. With a 2-D second input all leading dimensions of the first are rows.
    MatMul,
    /// Element by element with numpy's broadcasting.
    Binary(BinaryOp),
    /// Element by element.
    Activation(Activation),
    /// exp(x - max) / sum(exp(x - max)) along `axis`.
    Softmax {
        /// The axis that is normalised.
        axis: usize,
    },
    /// The index (INT64) of the largest element along `axis`; NaN is never larger.
    ArgMax {
        /// The axis searched.
        axis: usize,
        /// Whether the axis stays, with size 1.
        keep_dims: bool,
        /// Whether the last of equals wins instead of the first.
        select_last_index: bool,
    },
    /// The mean over `axes` (ascending, at least one).
    ReduceMean {
        /// The axes averaged over.
        axes: Axes,
        /// Whether the axes stay, with size 1.
        keep_dims: bool,
    },
    /// Output axis `i` is input axis `permutation[i]`.
    Transpose {
        /// A permutation of 0..rank.
        permutation: Axes,
    },
    /// Conversion to another type: FP16, FP32 and the integers. Floats to integers truncate towards zero and saturate, NaN
    /// gives 0; wider integers to narrower ones keep the low bits.
    Cast {
        /// The output's type.
        to: DType,
    },
}

/// Zeros (or nothing) around the image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pads {
    /// Above the first row.
    pub top: usize,
    /// Left of the first column.
    pub left: usize,
    /// Below the last row.
    pub bottom: usize,
    /// Right of the last column.
    pub right: usize,
}

/// A window that slides over height and width. Pairs are `[height, width]`.
///
/// Output pixel `o` covers input pixels `o * stride + i * dilation - pad` for `i` in `0..kernel`. The output has
/// `(size + pads - ((kernel - 1) * dilation + 1)) / stride + 1` pixels (ONNX's `ceil_mode` has become more padding below and
/// to the right), so every window lies within the padded image; a pooling's windows each hold at least one pixel of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The window's size, each at least 1.
    pub kernel: [usize; 2],
    /// Step from window to window, each at least 1.
    pub strides: [usize; 2],
    /// Step from element to element in a window, each at least 1.
    pub dilations: [usize; 2],
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
    /// The divisor: the whole window (`true`), or its pixels inside the image (`false`).
    pub count_include_pad: bool,
}

/// Arithmetic of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b
    Div,
}

/// A function of one element; also the end of a fused operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// max(x, 0); NaN stays.
    Relu,
    /// min(max(x, min), max); NaN stays. Infinite where ONNX leaves the bound out; `min > max` gives `max`.
    Clip {
        /// The lower bound.
        min: f32,
        /// The upper bound.
        max: f32,
    },
    /// 1 / (1 + exp(-x))
    Sigmoid,
    /// tanh(x)
    Tanh,
}

impl Op {
    /// The operation's name as ONNX spells it, for messages and profiles.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Conv(_) => "Conv",
            Op::MaxPool(_) => "MaxPool",
            Op::AveragePool(_) => "AveragePool",
            Op::MatMul => "MatMul",
            Op::Binary(BinaryOp::Add) => "Add",
            Op::Binary(BinaryOp::Sub) => "Sub",
            Op::Binary(BinaryOp::Mul) => "Mul",
            Op::Binary(BinaryOp::Div) => "Div",
            Op::Activation(Activation::Relu) => "Relu",
            Op::Activation(Activation::Clip { .. }) => "Clip",
            Op::Activation(Activation::Sigmoid) => "Sigmoid",
            Op::Activation(Activation::Tanh) => "Tanh",
            Op::Softmax { .. } => "Softmax",
            Op::ArgMax { .. } => "ArgMax",
            Op::ReduceMean { .. } => "ReduceMean",
            Op::Transpose { .. } => "Transpose",
            Op::Cast { .. } => "Cast",
        }
    }
}
