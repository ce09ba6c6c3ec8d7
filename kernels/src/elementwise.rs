//! Element by element over tensors with numpy's broadcasting: here arithmetic of halves and floats with what is fused to it,
//! computed in single precision and rounded once; below, arithmetic, comparisons and choices of any type. Where tensors lie
//! flat next to each other the loops run flat. Every element's bits depend on its operands alone.

mod bitwise;
mod broadcast;
mod comparison;
mod pairs;
mod select;
mod typed;

use std::ops::Range;

use crate::activation::Activation;
use crate::float::{CHUNK, Element, Floats, FloatsMut, mixed_types};
use crate::isa::{Instructions, Isa, Kernel};
use crate::number::Scalar;
pub use bitwise::{Bitwise, bitwise};
pub use broadcast::Broadcast;
pub use comparison::{Comparison, compare};
pub use select::select;
pub use typed::arithmetic;

/// The most dimensions that kernels take.
pub const MAX_RANK: usize = 8;

/// Arithmetic of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a * b
    Multiply,
    /// a / b; integers towards zero, 0 where b is 0
    Divide,
    /// a^b; integers lose the fraction
    Power,
    /// The remainder of a / b with the sign of a, as C has it
    Remainder,
    /// The remainder of a / b with the sign of b, as Python has it
    Modulo,
    /// The larger; NaN if one is NaN
    Maximum,
    /// The smaller; NaN if one is NaN
    Minimum,
    /// a, or a b where a is below 0
    Rectify,
}

/// Arithmetic of two tensors and what is fused to it.
#[derive(Debug, Clone, Copy)]
pub struct Binary<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The arithmetic.
    pub arithmetic: Arithmetic,
    /// How the operands' elements meet.
    pub broadcast: Broadcast,
    /// Added next, one value for each position in the last dimension of the output.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

impl Binary<'_> {
    /// Computes the output's `rows` (see [`Broadcast::rows`]) into `out`, which is those alone; `a` and `b` are whole tensors.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, rows: Range<usize>, a: Floats<'_>, b: Floats<'_>, out: FloatsMut<'_>) {
        let columns = self.broadcast.columns();
        assert!(self.bias.is_none_or(|bias| bias.len() == columns), "a bias has one value for each position of a row");
        assert_eq!(out.len(), rows.len() * columns, "the output is the rows that are computed");
        match (a, b, out) {
            (Floats::F16(a), Floats::F16(b), FloatsMut::F16(out)) => {
                self.isa.run(Run { binary: self, rows, a, b, out })
            }
            (Floats::F32(a), Floats::F32(b), FloatsMut::F32(out)) => {
                self.isa.run(Run { binary: self, rows, a, b, out })
            }
            (Floats::F16(_), b, out) => mixed_types(&b, &out),
            (a, _, out) => mixed_types(&a, &out),
        }
    }
}

struct Run<'a, E> {
    binary: &'a Binary<'a>,
    rows: Range<usize>,
    a: &'a [E],
    b: &'a [E],
    out: &'a mut [E],
}

impl<E: Element> Kernel for Run<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let broadcast = self.binary.broadcast;
        let columns = broadcast.columns();
        if columns == 0 {
            return;
        }
        if columns <= CHUNK / 2 && self.rows.len() > 1 {
            return self.short_rows(isa);
        }
        let [a_step, b_step] = broadcast.column_strides();
        let (mut a_buffer, mut b_buffer, mut wide) = ([0.0; CHUNK], [0.0; CHUNK], [0.0; CHUNK]);
        for (index, row) in self.rows.enumerate() {
            let [a_start, b_start] = broadcast.offsets(row);
            let mut first = 0;
            while first < columns {
                let length = (columns - first).min(CHUNK);
                let a = operand(isa, self.a, a_start, a_step, first, length, &mut a_buffer);
                let b = operand(isa, self.b, b_start, b_step, first, length, &mut b_buffer);
                let wide = &mut wide[..length];
                compute(self.binary.arithmetic, a, b, wide);
                if let Some(bias) = self.binary.bias {
                    for (value, bias) in wide.iter_mut().zip(&bias[first..first + length]) {
                        *value += bias;
                    }
                }
                self.binary.activation.apply(isa, wide);
                let at = index * columns + first;
                E::narrow(isa, wide, &mut self.out[at..at + length]);
                first += length;
            }
        }
    }
}

impl<E: Element> Run<'_, E> {
    /// Rows of a few elements: as many at a time as fit a buffer, each operand lying flat or laid out so. Every element is
    /// computed as it is in a row of its own.
    #[inline(always)]
    fn short_rows<I: Instructions>(self, isa: I) {
        let broadcast = self.binary.broadcast;
        let (columns, turn) = (broadcast.columns(), broadcast.turn());
        let most = CHUNK / columns;
        let mut operands = [RowGroup::new(&broadcast, 0), RowGroup::new(&broadcast, 1)];
        let (mut wide, mut bias) = ([0.0; CHUNK], [0.0; CHUNK]);
        if let Some(values) = self.binary.bias {
            bias[..most * columns].chunks_exact_mut(columns).for_each(|row| row.copy_from_slice(values));
        }
        let mut row = self.rows.start;
        while row < self.rows.end {
            let count = most.min(turn - row % turn).min(self.rows.end - row);
            let starts = broadcast.offsets(row);
            let wide = &mut wide[..count * columns];
            let [a, b] = &mut operands;
            let (a, b) = (a.read(isa, self.a, starts[0], count), b.read(isa, self.b, starts[1], count));
            compute(self.binary.arithmetic, a, b, wide);
            if self.binary.bias.is_some() {
                wide.iter_mut().zip(&bias).for_each(|(value, bias)| *value += bias);
            }
            self.binary.activation.apply(isa, wide);
            let at = (row - self.rows.start) * columns;
            E::narrow(isa, wide, &mut self.out[at..at + wide.len()]);
            row += count;
        }
    }
}

/// An operand of several short rows.
struct RowGroup {
    columns: usize,
    /// Steps from row to row and from column to column.
    row_step: usize,
    column_step: usize,
    /// Values laid out flat, and for which start, where the rows repeat.
    buffer: [f32; CHUNK],
    repeated: Option<(usize, usize)>,
}

impl RowGroup {
    fn new(broadcast: &Broadcast, operand: usize) -> RowGroup {
        RowGroup {
            columns: broadcast.columns(),
            row_step: broadcast.row_strides()[operand],
            column_step: broadcast.column_strides()[operand],
            buffer: [0.0; CHUNK],
            repeated: None,
        }
    }

    /// `count` rows from the element `start` on.
    #[inline(always)]
    fn read<'a, E: Element, I: Instructions>(
        &'a mut self,
        isa: I,
        values: &'a [E],
        start: usize,
        count: usize,
    ) -> &'a [f32] {
        let RowGroup { columns, row_step, column_step, .. } = *self;
        let length = count * columns;
        if (column_step == 1 || columns == 1) && row_step == columns {
            return E::read(isa, &values[start..start + length], &mut self.buffer);
        }
        let kept = self.repeated.is_some_and(|(from, rows)| row_step == 0 && from == start && rows >= count);
        if !kept {
            for (row, to) in self.buffer[..length].chunks_exact_mut(columns).enumerate() {
                let from = start + row * row_step;
                if column_step == 0 {
                    to.fill(values[from].to_f32());
                } else {
                    E::widen(isa, &values[from..from + columns], to);
                }
            }
            self.repeated = Some((start, count));
        }
        &self.buffer[..length]
    }
}

/// `length` values of an operand from column `first` on: a run of memory, or one element many times.
#[inline(always)]
fn operand<'a, E: Element, I: Instructions>(
    isa: I,
    values: &'a [E],
    start: usize,
    step: usize,
    first: usize,
    length: usize,
    buffer: &'a mut [f32; CHUNK],
) -> &'a [f32] {
    if step == 0 {
        buffer[..length].fill(values[start].to_f32());
        return &buffer[..length];
    }
    E::read(isa, &values[start + first..start + first + length], buffer)
}

#[inline(always)]
fn compute(arithmetic: Arithmetic, a: &[f32], b: &[f32], out: &mut [f32]) {
    match arithmetic {
        Arithmetic::Add => each(a, b, out, |a, b| a + b),
        Arithmetic::Subtract => each(a, b, out, |a, b| a - b),
        Arithmetic::Multiply => each(a, b, out, |a, b| a * b),
        Arithmetic::Divide => each(a, b, out, |a, b| a / b),
        Arithmetic::Power => each(a, b, out, f32::power),
        Arithmetic::Remainder => each(a, b, out, f32::remainder),
        Arithmetic::Modulo => each(a, b, out, f32::modulo),
        Arithmetic::Maximum => each(a, b, out, f32::larger),
        Arithmetic::Minimum => each(a, b, out, f32::smaller),
        Arithmetic::Rectify => each(a, b, out, |a, b| if a < 0.0 { a * b } else { a }),
    }
}

#[inline(always)]
fn each(a: &[f32], b: &[f32], out: &mut [f32], function: impl Fn(f32, f32) -> f32) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = function(*a, *b);
    }
}
