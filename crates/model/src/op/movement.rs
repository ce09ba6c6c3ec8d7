//! Operations that move elements, whatever their type, and those that find elements by their values. Attributes are resolved:
//! positions count from 0, sizes are known. They hold no tensors.

use smallvec::SmallVec;

use crate::graph::Dim;
use crate::op::Axes;

/// An operation that moves elements.
#[derive(Debug, Clone, PartialEq)]
pub enum Movement {
    /// Some positions of some axes. Any number of the axes, each once.
    Slice(SmallVec<[AxisSlice; 2]>),
    /// The inputs, one behind the other along `axis`.
    Concat {
        /// The axis that grows.
        axis: usize,
    },
    /// More positions before and behind. A second input, one element of the first's type, is what constant padding shows.
    Pad(Pad),
    /// numpy's broadcasting to `dims`.
    Expand {
        /// The output's dimensions; as many as the input's or more.
        dims: SmallVec<[Dim; 4]>,
    },
    /// `[.., axis, ..]` and indices of any shape give `[.., indices, ..]`: slices of the first.
    Gather {
        /// The axis that the indices point into.
        axis: usize,
    },
    /// The output has the indices' shape; each place has the first input's element at the place, but for `axis` at the index.
    GatherElements {
        /// The axis that the indices point into.
        axis: usize,
    },
    /// Index vectors in the second input's last dimension: the slices of the first that they point at.
    GatherNd {
        /// How many leading dimensions both inputs share.
        batch_dims: usize,
    },
    /// The first input with the third's elements at the places that the second's name, as in `GatherElements`.
    ScatterElements {
        /// The axis that the indices point into.
        axis: usize,
        /// How an update meets what is there; it replaces it when there is none.
        combine: Option<Combine>,
    },
    /// The first input with the third's slices at the places that the second's vectors name, as in `GatherNd`.
    ScatterNd {
        /// How an update meets what is there; it replaces it when there is none.
        combine: Option<Combine>,
    },
    /// The first input, caches, with the second's entries from the position on that the third, if it is there, has for each batch.
    CacheUpdate {
        /// The axis of the entries, not 0.
        axis: usize,
        /// Whether entries beyond the end go on at the beginning.
        circular: bool,
    },
    /// The largest or smallest elements along an axis. Equals in the order of their positions.
    Top(Top),
    /// Indices (INT64) become a new axis: the first of the second input's two elements everywhere, the other at the index.
    OneHot {
        /// Where the new axis is in the output.
        axis: usize,
        /// Its size; indices are -depth to depth - 1, others are nowhere.
        depth: usize,
    },
    /// The upper or lower triangles of matrices. The second input (one INT64) says by how many columns the diagonal is moved
    /// to the right.
    Triangle {
        /// Whether the upper is kept.
        upper: bool,
    },
    /// The first entries of each sequence turned around, as many as the second input (INT64) says.
    ReverseSequence {
        /// The axis of the entries, 0 or 1.
        time_axis: usize,
        /// The other of the two: that of the sequences.
        batch_axis: usize,
    },
    /// The positions of the elements that are not zero: `[rank, count]`, INT64. Of constants alone.
    NonZero(Found),
    /// What is unique. Of constants alone.
    Unique(Unique),
    /// Boxes that do not overlap better ones: `[count, 3]`, INT64: image, class, box. Of constants alone.
    NonMaxSuppression(NonMaxSuppression),
}

/// Some positions of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AxisSlice {
    /// The axis.
    pub axis: usize,
    /// The first position.
    pub start: usize,
    /// From position to position; may be negative, is not 0.
    pub step: i64,
    /// How many.
    pub size: usize,
}

/// How much is put around a tensor, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pad {
    /// Positions before each axis.
    pub before: Axes,
    /// Positions behind each axis.
    pub after: Axes,
    /// What they show.
    pub mode: PadMode,
}

/// What padding shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PadMode {
    /// One element, the second input.
    Constant,
    /// The nearest element.
    Edge,
    /// The tensor mirrored at its first and last positions, which are not repeated.
    Reflect,
    /// The tensor again.
    Wrap,
}

/// How an update meets what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The larger.
    Max,
    /// The smaller.
    Min,
}

/// The largest or smallest elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Top {
    /// The axis.
    pub axis: usize,
    /// How many, at most the axis's size.
    pub count: usize,
    /// Whether the largest.
    pub largest: bool,
    /// Whether their positions (INT64) are wanted instead of themselves.
    pub positions: bool,
}

/// What is wanted of an operation that finds things, whose number is not known before it has run once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Found {
    /// How many: a scalar, INT64.
    Count,
    /// All of them.
    All {
        /// How many there are.
        count: usize,
    },
}

/// What is unique in a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unique {
    /// The axis whose slices are compared; elements are when there is none.
    pub axis: Option<usize>,
    /// In ascending order, instead of the order in which they come.
    pub ascending: bool,
    /// Which of the outputs.
    pub output: UniqueOutput,
}

/// An output of Unique. All but the last need the number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UniqueOutput {
    /// How many: a scalar, INT64.
    Count,
    /// The first position of each (INT64).
    First {
        /// How many there are.
        count: usize,
    },
    /// How often each is there (INT64).
    Counts {
        /// How many there are.
        count: usize,
    },
    /// For each position of the input, which it is (INT64).
    Inverse,
}

/// How boxes are picked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonMaxSuppression {
    /// The most boxes of a class in an image.
    pub most: usize,
    /// A box is dropped when its overlap with one already picked is larger.
    pub iou_threshold: f32,
    /// Boxes are candidates only with a larger score; all are, when there is none.
    pub score_threshold: Option<f32>,
    /// Whether boxes are x, y of the centre, width and height, instead of two opposite corners.
    pub center_point: bool,
    /// Whether their number or all of them.
    pub found: Found,
}

impl Movement {
    /// The operation's name as ONNX spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Movement::Slice(_) => "Slice",
            Movement::Concat { .. } => "Concat",
            Movement::Pad(_) => "Pad",
            Movement::Expand { .. } => "Expand",
            Movement::Gather { .. } => "Gather",
            Movement::GatherElements { .. } => "GatherElements",
            Movement::GatherNd { .. } => "GatherND",
            Movement::ScatterElements { .. } => "ScatterElements",
            Movement::ScatterNd { .. } => "ScatterND",
            Movement::CacheUpdate { .. } => "TensorScatter",
            Movement::Top(_) => "TopK",
            Movement::OneHot { .. } => "OneHot",
            Movement::Triangle { .. } => "Trilu",
            Movement::ReverseSequence { .. } => "ReverseSequence",
            Movement::NonZero(_) => "NonZero",
            Movement::Unique(_) => "Unique",
            Movement::NonMaxSuppression(_) => "NonMaxSuppression",
        }
    }
}
