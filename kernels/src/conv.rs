//! Convolution (cross-correlation) of sequences, images and volumes, channels last: products of unfolded rows with packed weights, or, for
//! one channel a group, a direct sum over taps. An output pixel is a row, so any range of rows can be computed alone, and
//! a pixel's bits do not depend on how many images there are.

mod deformable;
mod depthwise;
mod im2col;

use std::ops::Range;

use crate::activation::Activation;
use crate::float::{Floats, FloatsMut};
use crate::gemm::{
    Destination, Gemm, MatrixRows, PackedWeights, PanelList, RowSource, Storage, fill_panels, gemm_scratch_bytes,
    panels_len,
};
use crate::isa::Isa;
use crate::window::Window;
pub use deformable::{DeformableConv, Deformation};
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

    fn check_weights(&self, weights: Floats<'_>) {
        assert_eq!(weights.len(), self.filters * self.depth(), "weights of a convolution");
    }

    /// Element (k, n) of the B of `group`.
    fn weight(&self, weights: Floats<'_>, group: usize, k: usize, n: usize) -> f32 {
        let (taps, channels) = (self.window.taps(), self.group_channels());
        let (tap, channel) = (k / channels, k % channels);
        weights.get(((group * self.group_filters() + n) * channels + channel) * taps + tap)
    }

    /// Element `i` of `[taps][channels]`.
    fn depthwise_weight(&self, weights: Floats<'_>, i: usize) -> f32 {
        weights.get(i % self.channels * self.window.taps() + i / self.channels)
    }

    /// One input channel and one output channel a group: too thin for products.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }
}

/// The weights of a convolution, laid out for its kernel when a model is loaded.
#[derive(Debug)]
pub struct ConvWeights(Layout);

#[derive(Debug)]
enum Layout {
    /// One B a group; K runs over taps, channels innermost.
    Groups(Vec<PackedWeights>),
    /// `[taps][channels]`.
    Depthwise(Vec<f32>),
}

/// The weights of a convolution, laid out for its kernel, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct ConvFilters<'a>(Filters<'a>);

#[derive(Debug, Clone, Copy)]
enum Filters<'a> {
    Groups(PanelList<'a>),
    Depthwise(&'a [f32]),
}

impl ConvWeights {
    /// Lays out `weights`, which are `[filters, channels / groups, kernel..]`.
    ///
    /// # Panics
    ///
    /// When `weights` has another number of elements than `shape` says.
    pub fn pack(shape: &ConvShape, storage: Storage, weights: Floats<'_>) -> ConvWeights {
        shape.check_weights(weights);
        if shape.is_depthwise() {
            let elements = shape.window.taps() * shape.channels;
            return ConvWeights(Layout::Depthwise((0..elements).map(|i| shape.depthwise_weight(weights, i)).collect()));
        }
        let group = |group: usize| {
            let value = |k, n| shape.weight(weights, group, k, n);
            PackedWeights::pack(storage, shape.depth(), shape.group_filters(), value)
        };
        ConvWeights(Layout::Groups((0..shape.groups).map(group).collect()))
    }

    /// As a convolution takes them.
    pub fn filters(&self) -> ConvFilters<'_> {
        ConvFilters(match &self.0 {
            Layout::Groups(groups) => Filters::Groups(PanelList::Packed(groups)),
            Layout::Depthwise(weights) => Filters::Depthwise(weights),
        })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Layout::Groups(groups) => groups.iter().map(PackedWeights::bytes).sum(),
            Layout::Depthwise(weights) => size_of_val(&**weights),
        }
    }
}

impl<'a> ConvFilters<'a> {
    /// Lays out weights that are known only during a run, `[filters, channels / groups, kernel..]`, in `to`, which has
    /// [`conv_filter_floats`] floats.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn pack(shape: &ConvShape, weights: Floats<'_>, to: &'a mut [f32]) -> ConvFilters<'a> {
        shape.check_weights(weights);
        assert_eq!(to.len(), conv_filter_floats(shape), "room for the filters of a convolution");
        if shape.is_depthwise() {
            for (i, to) in to.iter_mut().enumerate() {
                *to = shape.depthwise_weight(weights, i);
            }
            return ConvFilters(Filters::Depthwise(to));
        }
        let panels = panels_len(shape.depth(), shape.group_filters());
        for (group, to) in to.chunks_exact_mut(panels.max(1)).enumerate() {
            fill_panels(shape.depth(), shape.group_filters(), to, |k, n| shape.weight(weights, group, k, n));
        }
        ConvFilters(Filters::Groups(PanelList::Floats(to)))
    }
}

/// Floats that the filters of a convolution take when they are laid out during a run.
pub fn conv_filter_floats(shape: &ConvShape) -> usize {
    if shape.is_depthwise() {
        return shape.window.taps() * shape.channels;
    }
    panels_len(shape.depth(), shape.group_filters()).saturating_mul(shape.groups)
}

/// A convolution apart from the images it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct Conv<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub shape: ConvShape,
    /// The weights, packed for `shape`.
    pub weights: ConvFilters<'a>,
    /// What the sums of each output channel start from.
    pub bias: Option<&'a [f32]>,
    /// What is done to each finished sum.
    pub activation: Activation,
}

impl Conv<'_> {
    /// Computes the output pixels `rows` (counted through all images). `input` is the whole batch, `out` those pixels alone;
    /// `residual` lies as `out` does and is added before the activation; `scratch` has at least [`conv_scratch_bytes`] bytes, aligned
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
        assert_eq!(out.len(), rows.len() * shape.filters, "the output is the pixels that are computed");
        match self.weights.0 {
            Filters::Depthwise(weights) => Depthwise { conv: self, weights, rows }.run(input, residual, out),
            Filters::Groups(list) => {
                let (depth, columns) = (shape.depth(), shape.group_filters());
                for group in 0..shape.groups {
                    let filters = group * columns..(group + 1) * columns;
                    let panels = list.panels(group, group * panels_len(depth, columns), depth, columns);
                    let bias = self.bias.map(|bias| &bias[filters.clone()]);
                    let gemm = Gemm { isa: self.isa, panels, bias, activation: self.activation };
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
