//! Reductions in an element's own type, integers wrapping around; what has a fraction on the way (means, roots, logarithms) is
//! computed in double precision and converted once.

use std::ops::Range;

use super::Reduction;
use super::axes::Folding;
use crate::number::Scalar;

/// Computes `rows` of `out`; both are whole tensors.
pub(super) fn run<T: Scalar>(reduction: Reduction, folding: Folding, rows: Range<usize>, input: &[T], out: &mut [T]) {
    let columns = folding.columns();
    for row in rows {
        for column in 0..columns {
            let start = folding.kept.offset(row) + column;
            out[row * columns + column] = Elements { folding, input, start }.reduced(reduction);
        }
    }
}

/// Those that become one.
struct Elements<'a, T> {
    folding: Folding,
    input: &'a [T],
    start: usize,
}

impl<T: Scalar> Elements<'_, T> {
    fn fold<A>(&self, start: A, function: impl Fn(A, T) -> A) -> A {
        let length = if self.folding.inner_folded { self.folding.inner } else { 1 };
        (0..self.folding.folded.positions()).fold(start, |total, position| {
            let from = self.start + self.folding.folded.offset(position);
            self.input[from..from + length].iter().fold(total, |total, x| function(total, *x))
        })
    }

    fn sum(&self, function: impl Fn(f64) -> f64) -> f64 {
        self.fold(0.0, |total, x| total + function(x.to_f64()))
    }

    fn reduced(&self, reduction: Reduction) -> T {
        match reduction {
            Reduction::Sum => self.fold(T::ZERO, T::plus),
            Reduction::Product => self.fold(T::ONE, T::times),
            Reduction::Max => self.fold(T::LEAST, T::larger),
            Reduction::Min => self.fold(T::GREATEST, T::smaller),
            Reduction::L1 => self.fold(T::ZERO, |total, x| total.plus(x.magnitude())),
            Reduction::SumSquare => self.fold(T::ZERO, |total, x| total.plus(x.times(x))),
            Reduction::Mean => T::of_f64(self.sum(|x| x) / self.folding.count as f64),
            Reduction::L2 => T::of_f64(self.sum(|x| x * x).sqrt()),
            Reduction::LogSum => T::of_f64(self.sum(|x| x).ln()),
            Reduction::LogSumExp => {
                let max = self.fold(T::LEAST, T::larger).to_f64();
                let max = if max.is_finite() { max } else { 0.0 };
                T::of_f64(max + self.sum(|x| (x - max).exp()).ln())
            }
        }
    }
}
