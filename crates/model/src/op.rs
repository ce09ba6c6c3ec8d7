//! The closed list of operations that a device implements, with typed attributes. It holds no tensors and no shapes.
//!
//! Shape of the contract: every tensor is row-major in its stated shape and every operation has one output. The
//! reader turns ONNX operators into these: axes are resolved to 0..rank, padding is explicit, channels come last. So
//! * convolutions and poolings take and give `[N, spatial.., C]` with one to three spatial axes; a `Conv`'s second input is the
//!   weight as ONNX has it, `[M, C / groups, kernel..]`, and it has no bias input (that is an
//!   [`Epilogue`](crate::plan::Epilogue)'s);
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
    /// Cross-correlation. Inputs: `[N, spatial.., C]`, weight `[M, C / groups, kernel..]`. Output `[N, spatial.., M]`. Padding is
    /// zeros.
    Conv(Conv),
    /// The largest element of each window, never of the padding. `[N, spatial.., C]` to the same rank.
    MaxPool(Window),
    /// The mean of each window. `[N, spatial.., C]` to the same rank.
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
