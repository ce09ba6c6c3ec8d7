//! Recurrent layers (plain, GRU and LSTM as ONNX defines them), one direction at a time: the input is projected for all time
//! steps in one product, then each step adds the product of the last state and runs the cell. States are floats whatever the
//! storage. A sequence's bits do not depend on how many others there are.

mod cell;
mod gate_function;
mod weights;

use std::ops::Range;

use crate::float::{Element, Floats, FloatsMut};
use crate::gemm::{Destination, Gemm, MatrixRows, Panels, gemm_scratch_bytes};
use crate::isa::{Instructions, Isa, Kernel};
use crate::{Activation, activation::clip};

use cell::CellRows;
pub use gate_function::GateFunction;
pub use weights::{RecurrentFilters, RecurrentWeights, recurrent_filter_floats};

/// What a step computes from its input and the last state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cell {
    /// One gate: the state itself.
    Plain,
    /// Update, reset and candidate.
    Gru {
        /// Whether the reset gate is applied after the candidate's product instead of before it.
        linear_before_reset: bool,
    },
    /// Input, output, forget and candidate.
    Lstm {
        /// Whether the forget gate is one minus the input gate.
        input_forget: bool,
    },
}

impl Cell {
    /// How many gates.
    pub fn gates(self) -> usize {
        match self {
            Cell::Plain => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// States that follow the outputs of all steps: the last one, and a long short-term memory's cell.
    pub fn last_states(self) -> usize {
        if matches!(self, Cell::Lstm { .. }) { 2 } else { 1 }
    }

    /// Gates whose recurrent product is of the last state as it is.
    fn plain_gates(self) -> usize {
        if matches!(self, Cell::Gru { .. }) { 2 } else { self.gates() }
    }
}

/// Sizes of a recurrent layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecurrentShape {
    /// The cell.
    pub cell: Cell,
    /// Time steps.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Features of the input.
    pub input: usize,
    /// Features of the state.
    pub hidden: usize,
    /// 1, or 2 for a layer that reads forwards and backwards.
    pub directions: usize,
    /// Whether sequences and not time steps are the outermost axis: of the input `[batch, steps, input]`, of initial states
    /// `[batch, directions, hidden]` and of the output `[batch, steps + last states, directions, hidden]`. Otherwise these are
    /// `[steps, batch, input]`, `[directions, batch, hidden]` and `[steps + last states, directions, batch, hidden]`.
    pub batch_first: bool,
}

impl RecurrentShape {
    fn gate_columns(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Rows of the input: all steps of all sequences.
    pub fn rows(&self) -> usize {
        self.steps * self.batch
    }

    fn row(&self, step: usize, sequence: usize) -> usize {
        if self.batch_first { sequence * self.steps + step } else { step * self.batch + sequence }
    }

    /// Where the initial state of a sequence begins.
    fn initial_state(&self, direction: usize, sequence: usize) -> usize {
        let row =
            if self.batch_first { sequence * self.directions + direction } else { direction * self.batch + sequence };
        row * self.hidden
    }

    /// Where a step's output, or the last state number `step - steps`, begins.
    fn output(&self, step: usize, direction: usize, sequence: usize) -> usize {
        let row = if self.batch_first {
            (sequence * (self.steps + self.cell.last_states()) + step) * self.directions + direction
        } else {
            (step * self.directions + direction) * self.batch + sequence
        };
        row * self.hidden
    }
}

/// One direction of a recurrent layer, apart from what it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct Recurrent<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub shape: RecurrentShape,
    /// Which direction, and whether it reads backwards.
    pub direction: usize,
    /// Whether it begins with a sequence's last step.
    pub reverse: bool,
    /// The weights of all directions.
    pub weights: RecurrentFilters<'a>,
    /// All directions' biases, `[directions, 2 * gates * hidden]`.
    pub bias: Option<Floats<'a>>,
    /// All directions' weights of the cell state in an LSTM's input, output and forget gates, `[directions, 3 * hidden]`.
    pub peepholes: Option<Floats<'a>>,
    /// f, g and h of ONNX's definitions, as far as the cell has them.
    pub functions: [GateFunction; 3],
    /// The largest magnitude of what goes into the functions of gates.
    pub clip: Option<f32>,
    /// The length of each sequence; steps beyond it are zeros and leave the state alone.
    pub lengths: Option<&'a [i32]>,
}

/// The working memory of a run.
#[derive(Debug)]
pub struct RecurrentMemory<'a> {
    /// The input's part of the gates, by rows of the input.
    projected: &'a mut [f32],
    /// Biases of the projection, then that of a candidate after its product, then peepholes.
    constants: &'a mut [f32],
    /// The gates of a step, by sequences.
    gates: &'a mut [f32],
    hidden: &'a mut [f32],
    /// An LSTM's cell, or the state behind the reset gate.
    cell: &'a mut [f32],
    gemm: &'a mut [u8],
}

/// Rows that a projection likes to have at once.
const PROJECTED_ROWS: usize = 384;

impl<'a> RecurrentMemory<'a> {
    fn sizes(shape: &RecurrentShape) -> [usize; 5] {
        let (columns, states) = (shape.gate_columns(), shape.batch * shape.hidden);
        let constants = columns + 4 * shape.hidden;
        [shape.rows() * columns, constants, shape.batch * columns, states, states]
            .map(|floats: usize| floats.next_multiple_of(16))
    }

    /// Bytes of scratch for a layer of `shape`.
    pub fn bytes(shape: &RecurrentShape) -> usize {
        let floats: usize = Self::sizes(shape).iter().sum();
        let rows = shape.rows().min(PROJECTED_ROWS).max(shape.batch);
        let projection = gemm_scratch_bytes(rows, shape.input, shape.gate_columns());
        floats * size_of::<f32>() + projection.max(gemm_scratch_bytes(rows, shape.hidden, shape.gate_columns()))
    }

    /// Cut out of `scratch`, which has at least [`RecurrentMemory::bytes`] bytes, aligned to 64, of any content.
    ///
    /// # Panics
    ///
    /// When there is not enough: a defect of the caller.
    pub fn new(shape: &RecurrentShape, scratch: &'a mut [u8]) -> RecurrentMemory<'a> {
        let sizes = Self::sizes(shape);
        let (floats, gemm) = scratch.split_at_mut(sizes.iter().sum::<usize>() * size_of::<f32>());
        let mut rest: &mut [f32] = bytemuck::cast_slice_mut(floats);
        let [projected, constants, gates, hidden, cell] = sizes.map(|size| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(size);
            rest = behind;
            part
        });
        RecurrentMemory { projected, constants, gates, hidden, cell, gemm }
    }
}

impl Recurrent<'_> {
    /// Takes the initial states, zeros where there are none. Comes before everything else.
    pub fn start(&self, memory: &mut RecurrentMemory<'_>, hidden: Option<Floats<'_>>, cell: Option<Floats<'_>>) {
        let shape = &self.shape;
        for (to, from) in [(&mut *memory.hidden, hidden), (&mut *memory.cell, cell)] {
            to.fill(0.0);
            let Some(from) = from else { continue };
            for (sequence, to) in to.chunks_exact_mut(shape.hidden).take(shape.batch).enumerate() {
                let first = shape.initial_state(self.direction, sequence);
                copy(from.range(first..first + shape.hidden), to);
            }
        }
        memory.constants.fill(0.0);
        let columns = shape.gate_columns();
        let (biases, peepholes) = memory.constants.split_at_mut(columns + shape.hidden);
        if let Some(bias) = self.bias {
            let first = self.direction * 2 * columns;
            let after_product = matches!(shape.cell, Cell::Gru { linear_before_reset: true });
            let joined = if after_product { columns - shape.hidden } else { columns };
            for (gate, to) in biases[..columns].iter_mut().enumerate() {
                let recurrent = if gate < joined { bias.get(first + columns + gate) } else { 0.0 };
                *to = bias.get(first + gate) + recurrent;
            }
            if after_product {
                let first = first + columns + joined;
                copy(bias.range(first..first + shape.hidden), &mut biases[columns..]);
            }
        }
        if let Some(from) = self.peepholes {
            let first = self.direction * 3 * shape.hidden;
            copy(from.range(first..first + 3 * shape.hidden), &mut peepholes[..3 * shape.hidden]);
        }
    }

    /// Projects rows of the whole `input`; each row once, before the first step.
    pub fn project(&self, rows: Range<usize>, input: Floats<'_>, memory: &mut RecurrentMemory<'_>) {
        let columns = self.shape.gate_columns();
        let panels = self.weights.input(&self.shape, self.direction);
        let bias = Some(&memory.constants[..columns]);
        let gemm = Gemm { isa: self.isa, panels, bias, activation: Activation::None };
        let source = MatrixRows { isa: self.isa, values: input, row_stride: self.shape.input, depth_stride: 1 };
        let mut first = rows.start;
        while first < rows.end {
            let part = first..(first + PROJECTED_ROWS).min(rows.end);
            first = part.end;
            let offset = part.start * columns;
            let to = Destination { values: FloatsMut::F32(memory.projected), stride: columns, offset };
            gemm.run(part, &source, None, to, memory.gemm);
        }
    }

    /// Runs step number `step` in this direction's order for all sequences, and writes its output.
    pub fn step(&self, step: usize, memory: &mut RecurrentMemory<'_>, mut out: FloatsMut<'_>) {
        let shape = &self.shape;
        let (hidden, columns) = (shape.hidden, shape.gate_columns());
        let product =
            |panels: Panels<'_>, state: &[f32], bias: Option<&[f32]>, gates: &mut [f32], first, scratch: &mut [u8]| {
                let gemm = Gemm { isa: self.isa, panels, bias, activation: Activation::None };
                let source =
                    MatrixRows { isa: self.isa, values: Floats::F32(state), row_stride: hidden, depth_stride: 1 };
                let to = Destination { values: FloatsMut::F32(gates), stride: columns, offset: first };
                gemm.run(0..shape.batch, &source, None, to, scratch);
            };
        let RecurrentMemory { projected, constants, gates, hidden: state, cell, gemm } = memory;
        let (bias, peepholes) = (&constants[columns..columns + hidden], &constants[columns + hidden..]);
        product(self.weights.state(shape, self.direction), state, None, gates, 0, gemm);
        let first = shape.cell.plain_gates() * hidden;
        let rows = |part, gates: &mut [f32], state: &mut [f32], cell: &mut [f32]| {
            let peepholes = self.peepholes.map(|_| peepholes);
            self.isa.run(CellRows { layer: self, part, step, projected, peepholes, gates, state, cell });
        };
        match shape.cell {
            Cell::Gru { linear_before_reset } => {
                let candidate = self.weights.candidate(shape, self.direction);
                if linear_before_reset {
                    product(candidate, state, Some(bias), gates, first, gemm);
                    rows(cell::Part::Reset, gates, state, cell);
                } else {
                    rows(cell::Part::Reset, gates, state, cell);
                    product(candidate, cell, None, gates, first, gemm);
                }
                rows(cell::Part::Rest, gates, state, cell);
            }
            Cell::Plain | Cell::Lstm { .. } => rows(cell::Part::Rest, gates, state, cell),
        }
        for sequence in 0..shape.batch {
            let (time, runs) = self.time(step, sequence);
            let state = &memory.hidden[sequence * hidden..(sequence + 1) * hidden];
            self.write(runs.then_some(state), shape.output(time, self.direction, sequence), &mut out);
        }
    }

    /// Writes the last states behind the outputs of the steps.
    pub fn finish(&self, memory: &RecurrentMemory<'_>, mut out: FloatsMut<'_>) {
        let shape = &self.shape;
        let states = [&*memory.hidden, &*memory.cell];
        for (index, state) in states.into_iter().take(shape.cell.last_states()).enumerate() {
            for (sequence, state) in state.chunks_exact(shape.hidden).take(shape.batch).enumerate() {
                let at = shape.output(shape.steps + index, self.direction, sequence);
                self.write(Some(state), at, &mut out);
            }
        }
    }

    fn write(&self, state: Option<&[f32]>, at: usize, out: &mut FloatsMut<'_>) {
        let range = at..at + self.shape.hidden;
        match out {
            FloatsMut::F16(out) => self.isa.run(Write { state, to: &mut out[range] }),
            FloatsMut::F32(out) => self.isa.run(Write { state, to: &mut out[range] }),
        }
    }

    /// The time at which step number `step` reads the sequence, and whether it is within the sequence.
    fn time(&self, step: usize, sequence: usize) -> (usize, bool) {
        let length = match self.lengths.and_then(|lengths| lengths.get(sequence)) {
            Some(length) => usize::try_from(*length).unwrap_or(0).min(self.shape.steps),
            None => self.shape.steps,
        };
        let runs = step < length;
        (if runs && self.reverse { length - 1 - step } else { step }, runs)
    }

    fn clipped(&self, values: &mut [f32]) {
        if let Some(limit) = self.clip {
            for x in values {
                *x = clip(*x, -limit, limit);
            }
        }
    }
}

/// Stores a state, or zeros.
struct Write<'a, E> {
    state: Option<&'a [f32]>,
    to: &'a mut [E],
}

impl<E: Element> Kernel for Write<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        match self.state {
            Some(state) => E::narrow(isa, state, self.to),
            None => self.to.fill(E::zeroed()),
        }
    }
}

fn copy(from: Floats<'_>, to: &mut [f32]) {
    for (index, to) in to.iter_mut().enumerate() {
        *to = from.get(index);
    }
}
