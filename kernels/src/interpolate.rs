//! Resizes one axis of a tensor: each output position is a weighted sum of input positions, or a fixed value. The weights are
//! worked out once by whoever knows the geometry; several axes are resized one after the other.

use std::ops::Range;

use crate::float::{CHUNK, Element, Floats, FloatsMut, same_float_type};
use crate::isa::{Instructions, Isa, Kernel};
use crate::lanes::Strip;

/// Which input positions make each output position, with their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Taps {
    /// Where each output position's taps begin, and where the last ones end.
    starts: Vec<usize>,
    taps: Vec<(usize, f32)>,
    /// What an output position without taps is.
    fill: f32,
}

impl Taps {
    /// No output positions yet; those without taps will be `fill`.
    pub fn new(fill: f32) -> Taps {
        Taps { starts: vec![0], taps: Vec::new(), fill }
    }

    /// Adds an output position made of input positions with weights.
    pub fn push(&mut self, taps: impl IntoIterator<Item = (usize, f32)>) {
        self.taps.extend(taps);
        self.starts.push(self.taps.len());
    }

    /// How many output positions.
    pub fn outputs(&self) -> usize {
        self.starts.len() - 1
    }

    /// The most taps of an output position.
    pub fn most(&self) -> usize {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Bytes that they take on the heap.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.taps)
    }

    #[inline(always)]
    fn of(&self, output: usize) -> &[(usize, f32)] {
        &self.taps[self.starts[output]..self.starts[output + 1]]
    }
}

/// Computes the lines `lines` of `out`, seen as `[outer * outputs, inner]`, from `input`, seen as `[outer, axis, inner]`; both whole.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn interpolate(isa: Isa, taps: &Taps, strip: Strip, lines: Range<usize>, input: Floats<'_>, out: FloatsMut<'_>) {
    same_float_type!(input, out, |input, out| isa.run(Interpolate { taps, strip, lines, input, out }));
}

struct Interpolate<'a, E> {
    taps: &'a Taps,
    strip: Strip,
    lines: Range<usize>,
    input: &'a [E],
    out: &'a mut [E],
}

impl<E: Element> Kernel for Interpolate<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let Strip { axis, inner } = self.strip;
        let outputs = self.taps.outputs();
        for line in self.lines {
            let taps = self.taps.of(line % outputs);
            let base = line / outputs * axis * inner;
            for first in (0..inner).step_by(CHUNK) {
                let length = CHUNK.min(inner - first);
                let mut sums = [0.0; CHUNK];
                let sums = &mut sums[..length];
                if taps.is_empty() {
                    sums.fill(self.taps.fill);
                }
                for &(position, weight) in taps {
                    let at = base + position * inner + first;
                    add_weighted(isa, sums, weight, &self.input[at..at + length]);
                }
                let to = line * inner + first;
                E::narrow(isa, sums, &mut self.out[to..to + length]);
            }
        }
    }
}

/// Adds `weight` times `values`, of which there are as many as `sums` and at most [`CHUNK`].
#[inline(always)]
pub(crate) fn add_weighted<E: Element, I: Instructions>(isa: I, sums: &mut [f32], weight: f32, values: &[E]) {
    let mut buffer = [0.0; CHUNK];
    let wide = E::read(isa, values, &mut buffer);
    for (sum, x) in sums.iter_mut().zip(wide) {
        *sum = isa.mul_add(weight, *x, *sum);
    }
}
