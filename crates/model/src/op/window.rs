//! Operations that slide a window over an image, beyond plain convolution and pooling. They hold attributes and nothing else.

use crate::op::Window;

/// Attributes of a transposed convolution. Triples are `[depth, height, width]` as in [`Window`].
///
/// Input pixel `i` adds to output pixels `i * stride + k * dilation - pad` for `k` in `0..kernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvTranspose {
    /// The window's size, each at least 1.
    pub kernel: [usize; 3],
    /// Step from window to window, each at least 1.
    pub strides: [usize; 3],
    /// Step from element to element in a window, each at least 1.
    pub dilations: [usize; 3],
    /// What is cut off in front of the output.
    pub pads: [usize; 3],
    /// The output's size; where no window reaches it is zero.
    pub output: [usize; 3],
    /// Output channel `m` sees the input channels of group `m / (M / groups)` alone.
    pub groups: usize,
}

/// Attributes of a deformable convolution of flat images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeformConv {
    /// The kernel's window; its depth is 1.
    pub window: Window,
    /// As of a convolution.
    pub groups: usize,
    /// How many groups of input channels have offsets of their own.
    pub offset_groups: usize,
}

/// Attributes of a pooling by a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LpPool {
    /// The window.
    pub window: Window,
    /// The norm's degree, at least 1.
    pub p: i32,
}

/// Attributes of the positions of the largest elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaxPositions {
    /// The window.
    pub window: Window,
    /// Whether the pixels of a channel are counted with the first axis fastest instead of the last.
    pub column_major: bool,
}
