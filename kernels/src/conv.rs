//! Two-dimensional convolution (cross-correlation) of NHWC images: products of unfolded rows with packed weights, or, for
//! one channel a group, a direct sum over taps. An output pixel is a row, so any range of rows can be computed alone, and
//! a pixel's bits do not depend on how many images there are.

mod depthwise;
mod im2col;

use std::ops::Range;

use crate::activation::Activation;
use crate::float::{Floats, FloatsMut};
use crate::gemm::{Destination, Gemm, MatrixRows, PackedWeights, RowSource, Storage, gemm_scratch_bytes};
use crate::isa::Isa;
use crate::window::Window;
use depthwise::Depthwise;
use im2col::Im2col;

/// Sizes of a convolution, apart from the number of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvShape {
    /// The window.
    pub window: Window,
    /// Channels of the input, a multiple of `groups`.
    pub channels: usize,
    /// Channels of the output, a multiple of `groups`.
    pub filters: usize,
    /// Output channel `m` sees the input channels of group `m / (filters / groups)` alone.
    pub groups: usize,
}

impl ConvShape {
    fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    fn group_filters(&self) -> usize {
        self.filters / self.groups
    }

    fn depth(&self) -> usize {
        self.window.taps() * self.group_channels()
    }

    /// One input channel and one output channel a group: too thin for products.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }
}

/// The weights of a convolution, laid out for its kernel.
#[derive(Debug)]
pub struct ConvWeights(Layout);

#[derive(Debug)]
enum Layout {
    /// One B a group; K runs over taps row by row, channels innermost.
    Groups(Vec<PackedWeights>),
    /// `[taps][channels]`.
    Depthwise(Vec<f32>),
}

impl ConvWeights {
    /// Lays out `weights`, which are `[filters, channels / groups, kernel height, kernel width]`.
    ///
    /// # Panics
    ///
    /// When `weights` has another number of elements than `shape` says.
    pub fn pack(shape: &ConvShape, storage: Storage, weights: Floats<'_>) -> ConvWeights {
        let (taps, channels) = (shape.window.taps(), shape.group_channels());
        assert_eq!(weights.len(), shape.filters * channels * taps, "weights of a convolution");
        if shape.is_depthwise() {
            let value = |i: usize| weights.get(i % shape.channels * taps + i / shape.channels);
            return ConvWeights(Layout::Depthwise((0..taps * shape.channels).map(value).collect()));
        }
        let group = |group: usize| {
            let first = group * shape.group_filters();
            PackedWeights::pack(storage, shape.depth(), shape.group_filters(), |k, n| {
                let (tap, channel) = (k / channels, k % channels);
                weights.get(((first + n) * channels + channel) * taps + tap)
            })
        };
        ConvWeights(Layout::Groups((0..shape.groups).map(group).collect()))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Layout::Groups(groups) => groups.iter().map(PackedWeights::bytes).sum(),
            Layout::Depthwise(weights) => size_of_val(&**weights),
        }
    }
}

/// A convolution apart from the images it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct Conv<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub shape: ConvShape,
    /// The weights, packed for `shape`.
    pub weights: &'a ConvWeights,
    /// What the sums of each output channel start from.
    pub bias: Option<&'a [f32]>,
    /// What is done to each finished sum.
    pub activation: Activation,
}

impl Conv<'_> {
    /// Computes the output pixels `rows` (counted through all images). `input` and `out` are whole NHWC batches, `residual`
    /// lies as `out` does and is added before the activation; `scratch` has at least [`conv_scratch_bytes`] bytes, aligned
    /// to 64, of any content.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(
        &self,
        rows: Range<usize>,
        input: Floats<'_>,
        residual: Option<Floats<'_>>,
        mut out: FloatsMut<'_>,
        scratch: &mut [u8],
    ) {
        let shape = &self.shape;
        assert!(self.bias.is_none_or(|bias| bias.len() == shape.filters), "a bias has one value a filter");
        match &self.weights.0 {
            Layout::Depthwise(weights) => Depthwise { conv: self, weights, rows }.run(input, residual, out),
            Layout::Groups(groups) => {
                for (group, weights) in groups.iter().enumerate() {
                    let filters = group * shape.group_filters()..(group + 1) * shape.group_filters();
                    let bias = self.bias.map(|bias| &bias[filters.clone()]);
                    let gemm = Gemm { isa: self.isa, panels: weights.panels(), bias, activation: self.activation };
                    let to = Destination { values: out.reborrow(), stride: shape.filters, offset: filters.start };
                    let first_channel = group * shape.group_channels();
                    gemm.run(rows.clone(), &*self.source(input, first_channel), residual, to, scratch);
                }
            }
        }
    }

    fn source<'s>(&'s self, input: Floats<'s>, first_channel: usize) -> SourceBox<'s> {
        if self.shape.window.is_identity() {
            let values = input.range(first_channel..input.len());
            SourceBox::Matrix(MatrixRows { isa: self.isa, values, row_stride: self.shape.channels, depth_stride: 1 })
        } else {
            SourceBox::Im2col(Im2col { isa: self.isa, shape: self.shape, input, first_channel })
        }
    }
}

/// A source of rows without a heap block.
enum SourceBox<'a> {
    Matrix(MatrixRows<'a>),
    Im2col(Im2col<'a>),
}

impl<'a> std::ops::Deref for SourceBox<'a> {
    type Target = dyn RowSource + 'a;

    fn deref(&self) -> &(dyn RowSource + 'a) {
        match self {
            SourceBox::Matrix(source) => source,
            SourceBox::Im2col(source) => source,
        }
    }
}

/// Bytes of scratch that suffice for up to `rows` output pixels.
pub fn conv_scratch_bytes(shape: &ConvShape, rows: usize) -> usize {
    if shape.is_depthwise() {
        return 0;
    }
    gemm_scratch_bytes(rows, shape.depth(), shape.group_filters())
}
