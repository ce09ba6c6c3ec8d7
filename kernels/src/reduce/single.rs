//! Reductions in single precision: along an innermost axis in eight lanes, whose sums over pieces are added in double
//! precision; else many outputs beside each other, one position after the other, in blocks.

use std::ops::Range;

use super::Reduction;
use super::axes::Folding;
use crate::float::{CHUNK, Widened};
use crate::isa::{Instructions, Kernel};
use crate::math;
use crate::number::Scalar;

const LANES: usize = 8;

/// Positions whose sums are kept apart from the others', so that errors do not grow with the axis.
const BLOCK: usize = 64;

/// What is done to elements before they are folded.
#[derive(Clone, Copy)]
enum Map {
    Same,
    Magnitude,
    Square,
    /// e to the element less a maximum.
    Exponential,
}

/// How two become one.
#[derive(Clone, Copy)]
enum Fold {
    Sum,
    Product,
    Largest,
    Smallest,
}

impl Fold {
    fn start(self) -> f32 {
        match self {
            Fold::Sum => 0.0,
            Fold::Product => 1.0,
            Fold::Largest => f32::NEG_INFINITY,
            Fold::Smallest => f32::INFINITY,
        }
    }

    /// Folds each of `from` into its place in `to`.
    #[inline(always)]
    fn each(self, to: &mut [f32], from: &[f32]) {
        let pairs = to.iter_mut().zip(from);
        match self {
            Fold::Sum => pairs.for_each(|(to, x)| *to += x),
            Fold::Product => pairs.for_each(|(to, x)| *to *= x),
            Fold::Largest => pairs.for_each(|(to, x)| *to = to.larger(*x)),
            Fold::Smallest => pairs.for_each(|(to, x)| *to = to.smaller(*x)),
        }
    }

    #[inline(always)]
    fn one(self, total: f64, x: f32) -> f64 {
        let x = f64::from(x);
        match self {
            Fold::Sum => total + x,
            Fold::Product => total * x,
            Fold::Largest => total.larger(x),
            Fold::Smallest => total.smaller(x),
        }
    }
}

fn parts(reduction: Reduction) -> (Map, Fold) {
    match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::LogSum => (Map::Same, Fold::Sum),
        Reduction::Max => (Map::Same, Fold::Largest),
        Reduction::Min => (Map::Same, Fold::Smallest),
        Reduction::Product => (Map::Same, Fold::Product),
        Reduction::L1 => (Map::Magnitude, Fold::Sum),
        Reduction::L2 | Reduction::SumSquare => (Map::Square, Fold::Sum),
        Reduction::LogSumExp => (Map::Exponential, Fold::Sum),
    }
}

pub(super) struct Run<'a, E> {
    pub reduction: Reduction,
    pub folding: Folding,
    pub rows: Range<usize>,
    pub input: &'a [E],
    pub out: &'a mut [E],
}

impl<E: Widened> Kernel for Run<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, isa: I) {
        let (map, fold) = parts(self.reduction);
        for row in self.rows.clone() {
            let start = self.folding.kept.offset(row);
            if self.folding.inner_folded {
                let max = match map {
                    Map::Exponential => finite(self.along(isa, start, Map::Same, Fold::Largest, 0.0) as f32),
                    _ => 0.0,
                };
                let total = self.along(isa, start, map, fold, max) as f32;
                let result = [self.finish(isa, total, max)];
                E::narrow(isa, &result, &mut self.out[row..=row]);
            } else {
                for first in (0..self.folding.inner).step_by(CHUNK) {
                    let length = (self.folding.inner - first).min(CHUNK);
                    self.beside(isa, start + first, row * self.folding.inner + first, length);
                }
            }
        }
    }
}

impl<E: Widened> Run<'_, E> {
    /// One output: lanes along the innermost axis, pieces in double precision.
    #[inline(always)]
    fn along<I: Instructions>(&self, isa: I, start: usize, map: Map, fold: Fold, max: f32) -> f64 {
        let mut total = f64::from(fold.start());
        let maxima = [max; CHUNK];
        for position in 0..self.folding.folded.positions() {
            let from = start + self.folding.folded.offset(position);
            for values in self.input[from..from + self.folding.inner].chunks(CHUNK) {
                let mut buffer = [0.0; CHUNK];
                let buffer = &mut buffer[..values.len()];
                E::widen(isa, values, buffer);
                apply(isa, map, buffer, &maxima);
                let mut lanes = [fold.start(); LANES];
                let (rows, rest) = buffer.as_chunks::<LANES>();
                for row in rows {
                    fold.each(&mut lanes, row);
                }
                fold.each(&mut lanes, rest);
                let [a, b, c, d, e, f, g, h] = lanes;
                let mut halves = [a, b, c, d];
                fold.each(&mut halves, &[e, f, g, h]);
                for lane in halves {
                    total = fold.one(total, lane);
                }
            }
        }
        total
    }

    /// `length` outputs beside each other.
    #[inline(always)]
    fn beside<I: Instructions>(&mut self, isa: I, start: usize, to: usize, length: usize) {
        let (map, fold) = parts(self.reduction);
        let (mut maxima, mut totals) = ([0.0; CHUNK], [0.0; CHUNK]);
        if let Map::Exponential = map {
            self.fold_beside(isa, start, (Map::Same, Fold::Largest), &[0.0; CHUNK], &mut maxima[..length]);
            for max in &mut maxima[..length] {
                *max = finite(*max);
            }
        }
        self.fold_beside(isa, start, (map, fold), &maxima, &mut totals[..length]);
        for (total, max) in totals[..length].iter_mut().zip(maxima) {
            *total = self.finish(isa, *total, max);
        }
        E::narrow(isa, &totals[..length], &mut self.out[to..to + length]);
    }

    #[inline(always)]
    fn fold_beside<I: Instructions>(
        &self,
        isa: I,
        start: usize,
        (map, fold): (Map, Fold),
        maxima: &[f32; CHUNK],
        totals: &mut [f32],
    ) {
        totals.fill(fold.start());
        let (length, positions) = (totals.len(), self.folding.folded.positions());
        for first in (0..positions).step_by(BLOCK) {
            let mut block = [fold.start(); CHUNK];
            let block = &mut block[..length];
            for position in first..(first + BLOCK).min(positions) {
                let from = start + self.folding.folded.offset(position);
                let mut buffer = [0.0; CHUNK];
                let buffer = &mut buffer[..length];
                E::widen(isa, &self.input[from..from + length], buffer);
                apply(isa, map, buffer, maxima);
                fold.each(block, buffer);
            }
            fold.each(totals, block);
        }
    }

    #[inline(always)]
    fn finish<I: Instructions>(&self, isa: I, total: f32, max: f32) -> f32 {
        match self.reduction {
            Reduction::Mean => total / self.folding.count as f32,
            Reduction::L2 => total.sqrt(),
            Reduction::LogSum => math::log(isa, total),
            Reduction::LogSumExp => max + math::log(isa, total),
            _ => total,
        }
    }
}

#[inline(always)]
fn apply<I: Instructions>(isa: I, map: Map, values: &mut [f32], maxima: &[f32; CHUNK]) {
    match map {
        Map::Same => {}
        Map::Magnitude => values.iter_mut().for_each(|x| *x = x.abs()),
        Map::Square => values.iter_mut().for_each(|x| *x *= *x),
        Map::Exponential => values.iter_mut().zip(maxima).for_each(|(x, max)| *x = math::exp(isa, *x - max)),
    }
}

/// A maximum to subtract: with infinities and NaN left as they are, a difference would be NaN where the result is not.
#[inline(always)]
fn finite(max: f32) -> f32 {
    if max.is_finite() { max } else { 0.0 }
}
