//! Deformable convolution: each tap of each window is moved by an offset of its own, read between pixels, and may be scaled
//! (Dai et al., "Deformable Convolutional Networks", 2017; the scale after Zhu et al., 2019). The rows that it samples go
//! into an ordinary product.

use std::ops::Range;

use super::ConvShape;
use crate::activation::Activation;
use crate::float::{Element, Floats, FloatsMut};
use crate::gemm::{Destination, Gemm, PanelList, RowSource, fill_panels, panels_len};
use crate::isa::{Instructions, Isa, Kernel};
use crate::window::Pixel;

/// A deformable convolution of flat images apart from what it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct DeformableConv<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes; the window's depth is 1.
    pub shape: ConvShape,
    /// How many groups of input channels have offsets of their own.
    pub offset_groups: usize,
    /// Weights laid out by [`DeformableConv::arrange`].
    pub filters: &'a [f32],
}

/// How the windows of a batch are deformed.
#[derive(Debug, Clone, Copy)]
pub struct Deformation<'a> {
    /// `[output pixels, offset groups, taps, 2]`: how far each tap is moved down and to the right.
    pub offsets: Floats<'a>,
    /// `[output pixels, offset groups, taps]`: what each sample is multiplied with.
    pub mask: Option<Floats<'a>>,
}

impl DeformableConv<'_> {
    /// Floats that laid out weights take.
    pub fn filter_floats(shape: &ConvShape) -> usize {
        panels_len(shape.depth(), shape.group_filters()).saturating_mul(shape.groups)
    }

    /// Lays out `weights`, which are `[filters, channels / groups, kernel..]`.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn arrange(shape: &ConvShape, weights: Floats<'_>, to: &mut [f32]) {
        shape.check_weights(weights);
        let panels = panels_len(shape.depth(), shape.group_filters());
        for (group, to) in to.chunks_exact_mut(panels.max(1)).enumerate() {
            fill_panels(shape.depth(), shape.group_filters(), to, |k, n| shape.weight(weights, group, k, n));
        }
    }

    /// Computes the output pixels `rows`. `input` and `out` are whole batches, channels last; `scratch` has at least as many
    /// bytes as a product of `rows` rows needs, aligned to 64, of any content.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(
        &self,
        rows: Range<usize>,
        input: Floats<'_>,
        deformation: Deformation<'_>,
        mut out: FloatsMut<'_>,
        scratch: &mut [u8],
    ) {
        let shape = &self.shape;
        let (depth, columns) = (shape.depth(), shape.group_filters());
        for group in 0..shape.groups {
            let before = group * panels_len(depth, columns);
            let panels = PanelList::Floats(self.filters).panels(group, before, depth, columns);
            let gemm = Gemm { isa: self.isa, panels, bias: None, activation: Activation::None };
            let offset = rows.start * shape.filters + group * columns;
            let to = Destination { values: out.reborrow(), stride: shape.filters, offset };
            let source = Samples { conv: self, input, deformation, first_channel: group * shape.group_channels() };
            gemm.run(rows.clone(), &source, None, to, scratch);
        }
    }
}

/// The rows of one group.
struct Samples<'a> {
    conv: &'a DeformableConv<'a>,
    input: Floats<'a>,
    deformation: Deformation<'a>,
    first_channel: usize,
}

impl RowSource for Samples<'_> {
    fn pack(&self, rows: Range<usize>, depth: Range<usize>, to: &mut [f32], stride: usize) {
        match self.input {
            Floats::F16(input) => self.conv.isa.run(Sample { source: self, input, rows, depth, to, stride }),
            Floats::F32(input) => self.conv.isa.run(Sample { source: self, input, rows, depth, to, stride }),
        }
    }
}

struct Sample<'a, E> {
    source: &'a Samples<'a>,
    input: &'a [E],
    rows: Range<usize>,
    depth: Range<usize>,
    to: &'a mut [f32],
    stride: usize,
}

impl<E: Element> Kernel for Sample<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, _: I) {
        let Samples { conv, first_channel, .. } = *self.source;
        let (shape, channels) = (&conv.shape, conv.shape.group_channels());
        let per_offset = shape.channels / conv.offset_groups;
        let mut pixel = shape.window.pixel(self.rows.start);
        for (row, to) in self.rows.zip(self.to.chunks_mut(self.stride)) {
            let mut k = self.depth.start;
            while k < self.depth.end {
                let (tap, channel) = (k / channels, first_channel + k % channels);
                let end = (first_channel + channels).min((channel / per_offset + 1) * per_offset);
                let length = (end - channel).min(self.depth.end - k);
                let to = &mut to[k - self.depth.start..][..length];
                let place = self.source.place(row, pixel, tap, channel / per_offset);
                interpolate(shape, self.input, pixel.image, place, channel, to);
                k += length;
            }
            pixel = shape.window.next(pixel);
        }
    }
}

/// Where a tap of a window reads, in pixels, and what the sample is multiplied with.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: [f32; 2],
    scale: f32,
}

impl Samples<'_> {
    #[inline(always)]
    fn place(&self, row: usize, pixel: Pixel, tap: usize, group: usize) -> Place {
        let window = &self.conv.shape.window;
        let index = (row * self.conv.offset_groups + group) * window.taps() + tap;
        let taps = [tap / window.kernel[2], tap % window.kernel[2]];
        let at = std::array::from_fn(|i| {
            let axis = i + 1;
            let regular = (pixel.at[axis] * window.strides[axis] + taps[i] * window.dilations[axis]) as f32;
            regular - window.pads[axis] as f32 + self.deformation.offsets.get(2 * index + i)
        });
        Place { at, scale: self.deformation.mask.map_or(1.0, |mask| mask.get(index)) }
    }
}

/// Writes channels from `channel` on of the image at `place`: the four pixels around it by their nearness, those outside zero.
#[inline(always)]
fn interpolate<E: Element>(shape: &ConvShape, input: &[E], image: usize, place: Place, channel: usize, to: &mut [f32]) {
    let window = &shape.window;
    to.fill(0.0);
    let [y, x] = place.at;
    let (floor_y, floor_x) = (y.floor(), x.floor());
    for (line, near_y) in [(floor_y, 1.0 - (y - floor_y)), (floor_y + 1.0, y - floor_y)] {
        for (column, near_x) in [(floor_x, 1.0 - (x - floor_x)), (floor_x + 1.0, x - floor_x)] {
            let inside =
                (0.0..window.input[1] as f32).contains(&line) && (0.0..window.input[2] as f32).contains(&column);
            if !inside {
                continue;
            }
            let pixel = window.input_pixel(image, [0, line as usize, column as usize]);
            let from = pixel * shape.channels + channel;
            let weight = near_y * near_x * place.scale;
            for (to, x) in to.iter_mut().zip(&input[from..]) {
                *to += weight * x.to_f32();
            }
        }
    }
}
