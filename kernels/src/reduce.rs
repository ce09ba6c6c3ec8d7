//! Folds some axes of a tensor of any number type away: sums, means, extremes, norms. Halves, bfloat16 and floats run in single
//! precision with long sums in pieces, all else in its own type; an output's bits depend on its own elements alone.

mod axes;
mod single;
mod typed;

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};

use crate::isa::Isa;
use crate::number::{Number, with_type};
use axes::Folding;

/// What elements are folded to.
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
    Product,
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

/// A reduction of tensors of one shape, worked out once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduce {
    reduction: Reduction,
    folding: Folding,
}

impl Reduce {
    /// Of tensors of `shape` over `axes`. `None` when an axis does not exist or there are more than 8.
    pub fn new(reduction: Reduction, shape: &[usize], axes: &[usize]) -> Option<Reduce> {
        Some(Reduce { reduction, folding: Folding::new(shape, axes)? })
    }

    /// How many rows the output has: parts that can be computed alone.
    pub fn rows(&self) -> usize {
        self.folding.kept.positions()
    }

    /// Computes the output's `rows`; `input` and `out` are whole tensors of type `number`, aligned for it.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, isa: Isa, number: Number, rows: Range<usize>, input: &[u8], out: &mut [u8]) {
        let Reduce { reduction, folding } = *self;
        macro_rules! single {
            ($type:ty) => {
                isa.run(single::Run::<$type> {
                    reduction,
                    folding,
                    rows,
                    input: cast_slice(input),
                    out: cast_slice_mut(out),
                })
            };
        }
        match number {
            Number::F16 => single!(f16),
            Number::Bf16 => single!(bf16),
            Number::F32 => single!(f32),
            _ => with_type!(number, T => {
                typed::run::<T>(reduction, folding, rows, cast_slice(input), cast_slice_mut(out));
            }),
        }
    }
}
