//! Operations along axes that make one element of many, or run through them. They hold attributes and nothing else.

use crate::op::Axes;

/// What the elements along some axes become; of any number type, Max and Min of BOOL too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduce {
    /// What is computed.
    pub reduction: Reduction,
    /// The axes folded away, ascending, at least one.
    pub axes: Axes,
    /// Whether the axes stay, with size 1.
    pub keep_dims: bool,
}

/// What elements are folded to. Integers wrap around; their means, roots and logarithms lose the fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The sum by the number of elements.
    Mean,
    /// The largest; NaN if one is NaN.
    Max,
    /// The smallest; NaN if one is NaN.
    Min,
    /// The product.
    Prod,
    /// The sum of magnitudes.
    L1,
    /// The root of the sum of squares.
    L2,
    /// The logarithm of the sum.
    LogSum,
    /// The logarithm of the sum of exponentials, without overflow.
    LogSumExp,
    /// The sum of squares.
    SumSquare,
}

impl Reduction {
    /// The name as ONNX spells it.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "ReduceSum",
            Reduction::Mean => "ReduceMean",
            Reduction::Max => "ReduceMax",
            Reduction::Min => "ReduceMin",
            Reduction::Prod => "ReduceProd",
            Reduction::L1 => "ReduceL1",
            Reduction::L2 => "ReduceL2",
            Reduction::LogSum => "ReduceLogSum",
            Reduction::LogSumExp => "ReduceLogSumExp",
            Reduction::SumSquare => "ReduceSumSquare",
        }
    }
}

/// The index (INT64) of the largest or smallest element along `axis`, of any number type; NaN is neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgExtreme {
    /// The largest, or else the smallest.
    pub largest: bool,
    /// The axis searched.
    pub axis: usize,
    /// Whether the axis stays, with size 1.
    pub keep_dims: bool,
    /// Whether the last of equals wins instead of the first.
    pub select_last_index: bool,
}

/// Running sums or products along `axis`, of any number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cumulative {
    /// Products, or else sums.
    pub product: bool,
    /// The axis they run along.
    pub axis: usize,
    /// An element takes in those before it, without itself.
    pub exclusive: bool,
    /// From the last element to the first.
    pub reverse: bool,
}
