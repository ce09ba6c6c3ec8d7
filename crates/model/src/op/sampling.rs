//! Operations that read images between their pixels, and one that adds blocks up to images. Images are channels last, except in
//! Col2Im; floats alone. They hold no tensors.

use smallvec::SmallVec;

use crate::op::Axes;

/// An operation on images.
#[derive(Debug, Clone, PartialEq)]
pub enum Sampling {
    /// One axis resized.
    Resize(Resize),
    /// `[N, .., C]` and positions `[N, .., axes]` give `[N, .., C]`: the images at those positions.
    Grid(GridSample),
    /// `[N, H, W, C]`, regions `[R, 4]` and the image of each `[R]` (INT64) give `[R, h, w, C]`.
    RoiAlign(RoiAlign),
    /// `[N, C * block, blocks]` gives `[N, C, ..]`: what overlaps is added.
    Col2Im(Box<Col2Im>),
}

/// A new size for one axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resize {
    /// The axis.
    pub axis: usize,
    /// Its new size.
    pub size: usize,
    /// New over old, as the model states it: the new size may have been rounded.
    pub scale: f64,
    /// From new positions to old ones.
    pub coordinates: Coordinates,
    /// Between old positions.
    pub interpolation: Interpolation,
    /// Whether what lies outside has no weight, instead of that of the border.
    pub exclude_outside: bool,
    /// What lies outside, where the coordinates say that a position does; that of the border otherwise.
    pub extrapolation: f32,
}

/// From positions of a resized axis to those of the old one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Coordinates {
    /// (x + 0.5) / scale - 0.5
    HalfPixel,
    /// The same around the image's centre, where the new size was rounded.
    HalfPixelSymmetric,
    /// As `HalfPixel`, but -0.5 when the new size is 1.
    PytorchHalfPixel,
    /// The first and the last positions stay.
    AlignCorners,
    /// x / scale
    Asymmetric,
    /// A part of the axis, with the first and last positions of the part; outside is outside.
    CropAndResize {
        /// Where it begins, in 0..1 of the axis.
        start: f32,
        /// Where it ends.
        end: f32,
    },
}

/// How values between positions are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interpolation {
    /// One position's. The only one for other types than floats.
    Nearest(Rounding),
    /// From two positions.
    Linear {
        /// Whether more positions count where the axis gets smaller.
        antialias: bool,
    },
    /// From four positions, by cubic convolution.
    Cubic {
        /// Its coefficient.
        a: f32,
        /// Whether more positions count where the axis gets smaller.
        antialias: bool,
    },
}

/// Which position is the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Halves down.
    PreferFloor,
    /// Halves up.
    PreferCeil,
    /// Down.
    Floor,
    /// Up.
    Ceil,
}

/// How images are sampled at a grid's positions, which are in -1..1 of each axis, the last axis first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GridSample {
    /// Between pixels.
    pub interpolation: GridInterpolation,
    /// Outside.
    pub border: Border,
    /// Whether -1 and 1 are the centres of the corner pixels instead of their outer edges.
    pub align_corners: bool,
}

/// How values between pixels are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridInterpolation {
    /// The nearest pixel; halves to even.
    Nearest,
    /// From two pixels along each axis.
    Linear,
    /// From four pixels along each axis.
    Cubic,
}

/// What lies outside of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Border {
    /// Zeros.
    Zeros,
    /// The nearest pixel.
    Edge,
    /// The image mirrored.
    Reflection,
}

/// How regions are pooled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoiAlign {
    /// The output's height and width.
    pub output: [usize; 2],
    /// Whether the largest sample is taken instead of the mean.
    pub max: bool,
    /// Samples along each side of a bin; 0 takes as many as the bin has pixels.
    pub sampling_ratio: usize,
    /// From a region's coordinates to the image's.
    pub spatial_scale: f32,
    /// Whether pixels' centres lie at halves.
    pub half_pixel: bool,
}

/// Blocks that are added up to images. One entry a spatial axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Col2Im {
    /// The image's sizes.
    pub image: Axes,
    /// A block's sizes.
    pub block: Axes,
    /// Steps from element to element in a block.
    pub dilations: Axes,
    /// Steps from block to block.
    pub strides: Axes,
    /// Padding before and behind the image.
    pub pads: SmallVec<[[usize; 2]; 2]>,
}

impl Col2Im {
    /// How many blocks there are along each axis; `None` when a block does not fit.
    pub fn blocks(&self) -> Option<Axes> {
        let along = |axis: usize| {
            let reach = self.block[axis].checked_sub(1)?.checked_mul(self.dilations[axis])?.checked_add(1)?;
            let room = self.image[axis].checked_add(self.pads[axis][0])?.checked_add(self.pads[axis][1])?;
            Some(room.checked_sub(reach)? / self.strides[axis] + 1)
        };
        (0..self.image.len()).map(along).collect()
    }
}

impl Sampling {
    /// The operation's name as ONNX spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Sampling::Resize(_) => "Resize",
            Sampling::Grid(_) => "GridSample",
            Sampling::RoiAlign(_) => "RoiAlign",
            Sampling::Col2Im(_) => "Col2Im",
        }
    }
}
