//! The mean over some axes of a tensor. Sums run in single precision: in eight lanes along an innermost axis, else one
//! element after the other; an output's bits depend on its own elements alone.

use std::ops::Range;

use crate::elementwise::MAX_RANK;
use crate::float::{CHUNK, Element, Floats, FloatsMut, same_float_type};
use crate::isa::{Instructions, Isa, Kernel};
use crate::lanes::{add_to_lanes, finish_sum};

/// Which axes of a shape are averaged over, worked out once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mean {
    kept: Axes,
    reduced: Axes,
    /// The innermost axis, and whether it is averaged over.
    inner: usize,
    inner_reduced: bool,
    count: usize,
}

/// Axes with their steps in the input, outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axes {
    rank: usize,
    sizes: [usize; MAX_RANK],
    steps: [usize; MAX_RANK],
}

impl Axes {
    const NONE: Axes = Axes { rank: 0, sizes: [1; MAX_RANK], steps: [0; MAX_RANK] };

    fn push(&mut self, size: usize, step: usize) {
        self.sizes[self.rank] = size;
        self.steps[self.rank] = step;
        self.rank += 1;
    }

    fn positions(&self) -> usize {
        self.sizes[..self.rank].iter().product()
    }

    #[inline(always)]
    fn offset(&self, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in (0..self.rank).rev() {
            offset += index % self.sizes[axis] * self.steps[axis];
            index /= self.sizes[axis];
        }
        offset
    }
}

impl Mean {
    /// The mean of tensors of `shape` over `axes`. `None` when an axis does not exist or there are more than 8.
    pub fn new(shape: &[usize], axes: &[usize]) -> Option<Mean> {
        if shape.len() > MAX_RANK || axes.iter().any(|axis| *axis >= shape.len()) {
            return None;
        }
        // Neighbours of one kind are one axis; an axis of one element is of any kind.
        let mut joined: [(usize, bool); MAX_RANK] = [(1, false); MAX_RANK];
        let mut rank = 0;
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let reduced = axes.contains(&axis);
            match joined[..rank].last_mut() {
                Some((last, kind)) if *kind == reduced => *last *= size,
                _ => {
                    joined[rank] = (size, reduced);
                    rank += 1;
                }
            }
        }
        let (inner, inner_reduced) = joined[..rank].last().copied().unwrap_or((1, false));
        let mut mean = Mean { kept: Axes::NONE, reduced: Axes::NONE, inner, inner_reduced, count: 1 };
        for axis in 0..rank.saturating_sub(1) {
            let (size, reduced) = joined[axis];
            let step = joined[axis + 1..rank].iter().map(|(size, _)| size).product();
            if reduced { mean.reduced.push(size, step) } else { mean.kept.push(size, step) }
        }
        mean.count = mean.reduced.positions() * if inner_reduced { inner } else { 1 };
        Some(mean)
    }

    /// How many rows the output has: parts that can be computed alone.
    pub fn rows(&self) -> usize {
        self.kept.positions()
    }

    fn columns(&self) -> usize {
        if self.inner_reduced { 1 } else { self.inner }
    }

    /// Computes the output's `rows`; `input` and `out` are whole tensors.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, isa: Isa, rows: Range<usize>, input: Floats<'_>, out: FloatsMut<'_>) {
        same_float_type!(input, out, |input, out| isa.run(Run { mean: *self, rows, input, out }));
    }
}

struct Run<'a, E> {
    mean: Mean,
    rows: Range<usize>,
    input: &'a [E],
    out: &'a mut [E],
}

impl<E: Element> Kernel for Run<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, isa: I) {
        for row in self.rows.clone() {
            let start = self.mean.kept.offset(row);
            if self.mean.inner_reduced {
                self.along(isa, start, row);
            } else {
                for first in (0..self.mean.inner).step_by(CHUNK) {
                    let length = (self.mean.inner - first).min(CHUNK);
                    self.across(isa, start + first, row * self.mean.columns() + first, length);
                }
            }
        }
    }
}

impl<E: Element> Run<'_, E> {
    /// One output: sums along the innermost axis in lanes.
    #[inline(always)]
    fn along<I: Instructions>(&mut self, isa: I, start: usize, to: usize) {
        let mut lanes = [0.0; 8];
        for position in 0..self.mean.reduced.positions() {
            let from = start + self.mean.reduced.offset(position);
            for values in self.input[from..from + self.mean.inner].chunks(CHUNK) {
                let mut buffer = [0.0; CHUNK];
                add_to_lanes(&mut lanes, E::read(isa, values, &mut buffer));
            }
        }
        let mean = [finish_sum(lanes) / self.mean.count as f32];
        E::narrow(isa, &mean, &mut self.out[to..=to]);
    }

    /// `length` outputs beside each other.
    #[inline(always)]
    fn across<I: Instructions>(&mut self, isa: I, start: usize, to: usize, length: usize) {
        let mut sums = [0.0; CHUNK];
        let sums = &mut sums[..length];
        for position in 0..self.mean.reduced.positions() {
            let from = start + self.mean.reduced.offset(position);
            let mut buffer = [0.0; CHUNK];
            let wide = E::read(isa, &self.input[from..from + length], &mut buffer);
            for (sum, x) in sums.iter_mut().zip(wide) {
                *sum += x;
            }
        }
        for sum in sums.iter_mut() {
            *sum /= self.mean.count as f32;
        }
        E::narrow(isa, sums, &mut self.out[to..to + length]);
    }
}
