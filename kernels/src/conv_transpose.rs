//! Transposed convolution of sequences, images and volumes, channels last. The output pixels that see the same taps are a
//! phase (a stride of 2 in both directions makes four); each phase is an ordinary product of input pixels with the weights of
//! its taps, so no multiplication meets a zero between pixels. Rows are output pixels, phase by phase: any range of them can
//! be computed alone, and a pixel's bits do not depend on how many images there are.

mod phase;

use std::ops::Range;

use crate::activation::Activation;
use crate::float::{Element, Floats, FloatsMut};
use crate::gemm::{Destination, Gemm, PackedWeights, PanelList, Storage, fill_panels, gemm_scratch_bytes, panels_len};
use crate::isa::{Instructions, Isa, Kernel};
use crate::window::Window;
use phase::{Phase, PhaseRows, phases};

/// Rows whose sums wait in scratch to be put in their places.
const STAGED_ROWS: usize = 192;

/// Sizes of a transposed convolution, apart from the number of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvTransposeShape {
    /// The window of the convolution that this one transposes: what is input there is output here.
    pub window: Window,
    /// Channels of the input, a multiple of `groups`.
    pub channels: usize,
    /// Channels of the output, a multiple of `groups`.
    pub filters: usize,
    /// Output channel `m` sees the input channels of group `m / (filters / groups)` alone.
    pub groups: usize,
}

impl ConvTransposeShape {
    fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    fn group_filters(&self) -> usize {
        self.filters / self.groups
    }

    /// Output pixels of `images` images.
    pub fn rows(&self, images: usize) -> usize {
        images * self.window.input_pixels()
    }

    fn depth(&self, phase: &Phase) -> usize {
        phase.taps() * self.group_channels()
    }

    /// Element (k, n) of the B of `phase` and `group`, of weights `[channels, filters / groups, kernel..]`.
    fn weight(&self, weights: Floats<'_>, phase: &Phase, group: usize, k: usize, n: usize) -> f32 {
        let (tap, channel) = (k / self.group_channels(), k % self.group_channels());
        let row = (group * self.group_channels() + channel) * self.group_filters() + n;
        weights.get(row * self.window.taps() + phase.tap(&self.window, tap))
    }

    fn check_weights(&self, weights: Floats<'_>) {
        let elements = self.channels * self.group_filters() * self.window.taps();
        assert_eq!(weights.len(), elements, "weights of a transposed convolution");
    }
}

/// The weights of a transposed convolution, one B a phase and group, laid out when a model is loaded.
#[derive(Debug)]
pub struct ConvTransposeWeights(Vec<PackedWeights>);

/// The weights of a transposed convolution, laid out for its kernel, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct ConvTransposeFilters<'a>(PanelList<'a>);

impl ConvTransposeWeights {
    /// Lays out `weights`, which are `[channels, filters / groups, kernel..]`.
    ///
    /// # Panics
    ///
    /// When `weights` has another number of elements than `shape` says.
    pub fn pack(shape: &ConvTransposeShape, storage: Storage, weights: Floats<'_>) -> ConvTransposeWeights {
        shape.check_weights(weights);
        let mut packed = Vec::new();
        for phase in phases(&shape.window) {
            for group in 0..shape.groups {
                let value = |k, n| shape.weight(weights, &phase, group, k, n);
                packed.push(PackedWeights::pack(storage, shape.depth(&phase), shape.group_filters(), value));
            }
        }
        ConvTransposeWeights(packed)
    }

    /// As a transposed convolution takes them.
    pub fn filters(&self) -> ConvTransposeFilters<'_> {
        ConvTransposeFilters(PanelList::Packed(&self.0))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(PackedWeights::bytes).sum()
    }
}

impl<'a> ConvTransposeFilters<'a> {
    /// Lays out weights that are known only during a run in `to`, which has [`conv_transpose_filter_floats`] floats.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn pack(shape: &ConvTransposeShape, weights: Floats<'_>, to: &'a mut [f32]) -> ConvTransposeFilters<'a> {
        shape.check_weights(weights);
        let mut rest = &mut *to;
        for phase in phases(&shape.window) {
            for group in 0..shape.groups {
                let (depth, columns) = (shape.depth(&phase), shape.group_filters());
                let (panels, behind) = rest.split_at_mut(panels_len(depth, columns));
                fill_panels(depth, columns, panels, |k, n| shape.weight(weights, &phase, group, k, n));
                rest = behind;
            }
        }
        ConvTransposeFilters(PanelList::Floats(to))
    }
}

/// Floats that the filters take when they are laid out during a run.
pub fn conv_transpose_filter_floats(shape: &ConvTransposeShape) -> usize {
    let columns = shape.group_filters();
    phases(&shape.window).map(|phase| panels_len(shape.depth(&phase), columns) * shape.groups).sum()
}

/// Bytes of scratch that suffice for any rows.
pub fn conv_transpose_scratch_bytes(shape: &ConvTransposeShape) -> usize {
    let deepest = phases(&shape.window).map(|phase| shape.depth(&phase)).max().unwrap_or(0);
    staged_bytes(shape) + gemm_scratch_bytes(STAGED_ROWS, deepest, shape.group_filters())
}

fn staged_bytes(shape: &ConvTransposeShape) -> usize {
    (STAGED_ROWS * shape.filters * size_of::<f32>()).next_multiple_of(64)
}

/// A transposed convolution apart from the images it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct ConvTranspose<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub shape: ConvTransposeShape,
    /// The weights, packed for `shape`.
    pub weights: ConvTransposeFilters<'a>,
    /// What the sums of each output channel start from.
    pub bias: Option<&'a [f32]>,
    /// What is done to each finished sum.
    pub activation: Activation,
}

impl ConvTranspose<'_> {
    /// Computes the output pixels that are `rows` in the order of phases, images and pixels. `input` and `out` are whole
    /// batches; `scratch` has at least [`conv_transpose_scratch_bytes`] bytes, aligned to 64, of any content.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, rows: Range<usize>, input: Floats<'_>, mut out: FloatsMut<'_>, scratch: &mut [u8]) {
        let shape = &self.shape;
        let images = out.len() / (shape.window.input_pixels() * shape.filters).max(1);
        let (staged, scratch) = scratch.split_at_mut(staged_bytes(shape));
        let staged = &mut bytemuck::cast_slice_mut(staged)[..STAGED_ROWS * shape.filters];
        let (mut first_row, mut panel, mut before) = (0, 0, 0);
        for phase in phases(&shape.window) {
            let phase_rows = phase.rows(images);
            let mut first = rows.start.clamp(first_row, first_row + phase_rows) - first_row;
            let end = rows.end.clamp(first_row, first_row + phase_rows) - first_row;
            while first < end {
                let part = first..(first + STAGED_ROWS).min(end);
                first = part.end;
                self.sums(&phase, (panel, before), part.clone(), input, staged, scratch);
                self.isa.run(Place { shape, phase: &phase, rows: part, staged, out: out.reborrow() });
            }
            first_row += phase_rows;
            panel += shape.groups;
            before += panels_len(shape.depth(&phase), shape.group_filters()) * shape.groups;
        }
    }

    /// Finished values of some rows of a phase, whose Bs begin with number `first.0`, behind `first.1` floats.
    fn sums(
        &self,
        phase: &Phase,
        first: (usize, usize),
        rows: Range<usize>,
        input: Floats<'_>,
        staged: &mut [f32],
        scratch: &mut [u8],
    ) {
        let shape = &self.shape;
        let (depth, columns) = (shape.depth(phase), shape.group_filters());
        for group in 0..shape.groups {
            let before = first.1 + group * panels_len(depth, columns);
            let panels = self.weights.0.panels(first.0 + group, before, depth, columns);
            let bias = self.bias.map(|bias| &bias[group * columns..(group + 1) * columns]);
            let gemm = Gemm { isa: self.isa, panels, bias, activation: self.activation };
            let channels = group * shape.group_channels()..(group + 1) * shape.group_channels();
            let source = PhaseRows { isa: self.isa, shape, phase, channels, first_row: rows.start, input };
            let to = Destination { values: FloatsMut::F32(staged), stride: shape.filters, offset: group * columns };
            gemm.run(0..rows.len(), &source, None, to, scratch);
        }
    }
}

/// Moves finished rows of a phase to the output.
struct Place<'a> {
    shape: &'a ConvTransposeShape,
    phase: &'a Phase,
    rows: Range<usize>,
    staged: &'a [f32],
    out: FloatsMut<'a>,
}

impl Kernel for Place<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let Place { shape, phase, rows, staged, out } = self;
        match out {
            FloatsMut::F16(out) => place(isa, shape, phase, rows, staged, out),
            FloatsMut::F32(out) => place(isa, shape, phase, rows, staged, out),
        }
    }
}

#[inline(always)]
fn place<I: Instructions, E: Element>(
    isa: I,
    shape: &ConvTransposeShape,
    phase: &Phase,
    rows: Range<usize>,
    staged: &[f32],
    out: &mut [E],
) {
    for (row, from) in rows.zip(staged.chunks_exact(shape.filters)) {
        let (image, at) = phase.pixel(&shape.window, row);
        let pixel = shape.window.input_pixel(image, at);
        E::narrow(isa, from, &mut out[pixel * shape.filters..(pixel + 1) * shape.filters]);
    }
}
