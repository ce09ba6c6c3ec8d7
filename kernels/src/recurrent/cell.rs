//! The arithmetic of a step once its products are there: gates, then the new state, sequence by sequence. Names follow
//! ONNX's definitions. The layer calls it after its products; it writes no outputs.

use super::{Cell, Recurrent};
use crate::isa::{Instructions, Kernel};

/// A GRU needs its reset gate before the candidate's product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Update and reset gates, and the state behind the reset gate.
    Reset,
    /// What is left.
    Rest,
}

/// One part of a step for all sequences.
pub(super) struct CellRows<'a> {
    pub layer: &'a Recurrent<'a>,
    pub part: Part,
    pub step: usize,
    pub projected: &'a [f32],
    pub peepholes: Option<&'a [f32]>,
    pub gates: &'a mut [f32],
    pub state: &'a mut [f32],
    pub cell: &'a mut [f32],
}

impl Kernel for CellRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let CellRows { layer, part, step, projected, peepholes, gates, state, cell } = self;
        let (hidden, columns) = (layer.shape.hidden, layer.shape.gate_columns());
        let rows =
            gates.chunks_exact_mut(columns).zip(state.chunks_exact_mut(hidden)).zip(cell.chunks_exact_mut(hidden));
        for (sequence, ((gates, state), cell)) in rows.take(layer.shape.batch).enumerate() {
            let (time, runs) = layer.time(step, sequence);
            if !runs {
                continue;
            }
            let row = layer.shape.row(time, sequence) * columns;
            let projected = &projected[row..row + columns];
            match (layer.shape.cell, part) {
                (Cell::Plain, _) => plain(isa, layer, projected, gates, state),
                (Cell::Gru { .. }, Part::Reset) => reset(isa, layer, projected, gates, state, cell),
                (Cell::Gru { .. }, Part::Rest) => update(isa, layer, projected, gates, state),
                (Cell::Lstm { input_forget }, _) => {
                    lstm(isa, layer, input_forget, projected, peepholes, gates, state, cell);
                }
            }
        }
    }
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

#[inline(always)]
fn add_products<I: Instructions>(isa: I, to: &mut [f32], left: &[f32], right: &[f32]) {
    for ((to, left), right) in to.iter_mut().zip(left).zip(right) {
        *to = isa.mul_add(*left, *right, *to);
    }
}

#[inline(always)]
fn plain<I: Instructions>(isa: I, layer: &Recurrent<'_>, projected: &[f32], gates: &mut [f32], state: &mut [f32]) {
    add(gates, projected);
    layer.clipped(gates);
    layer.functions[0].apply(isa, gates);
    state.copy_from_slice(gates);
}

/// z = f(..), r = f(..); `cell` becomes r * state for a candidate whose product comes after.
#[inline(always)]
fn reset<I: Instructions>(
    isa: I,
    layer: &Recurrent<'_>,
    projected: &[f32],
    gates: &mut [f32],
    state: &[f32],
    cell: &mut [f32],
) {
    let hidden = state.len();
    let gates = &mut gates[..2 * hidden];
    add(gates, projected);
    layer.clipped(gates);
    layer.functions[0].apply(isa, gates);
    for ((to, reset), state) in cell.iter_mut().zip(&gates[hidden..]).zip(state) {
        *to = reset * state;
    }
}

/// n = g(..); state = (1 - z) n + z state.
#[inline(always)]
fn update<I: Instructions>(isa: I, layer: &Recurrent<'_>, projected: &[f32], gates: &mut [f32], state: &mut [f32]) {
    let hidden = state.len();
    let (others, candidate) = gates.split_at_mut(2 * hidden);
    let (update, reset) = others.split_at(hidden);
    if let Cell::Gru { linear_before_reset: true } = layer.shape.cell {
        for (candidate, reset) in candidate.iter_mut().zip(reset) {
            *candidate *= reset;
        }
    }
    add(candidate, &projected[2 * hidden..]);
    layer.clipped(candidate);
    layer.functions[1].apply(isa, candidate);
    for ((state, update), candidate) in state.iter_mut().zip(update).zip(candidate) {
        *state = isa.mul_add(*update, *state, (1.0 - update) * *candidate);
    }
}

/// C = f C + i g; state = o h(C).
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "one row of everything that the layer has by rows")]
fn lstm<I: Instructions>(
    isa: I,
    layer: &Recurrent<'_>,
    input_forget: bool,
    projected: &[f32],
    peepholes: Option<&[f32]>,
    gates: &mut [f32],
    state: &mut [f32],
    cell: &mut [f32],
) {
    let hidden = state.len();
    let [f, g, h] = layer.functions;
    add(gates, projected);
    let (first, last) = gates.split_at_mut(2 * hidden);
    let (input, output) = first.split_at_mut(hidden);
    let (forget, candidate) = last.split_at_mut(hidden);
    if let Some(peepholes) = peepholes {
        add_products(isa, input, &peepholes[..hidden], cell);
        add_products(isa, forget, &peepholes[2 * hidden..3 * hidden], cell);
    }
    layer.clipped(input);
    f.apply(isa, input);
    if input_forget {
        for (forget, input) in forget.iter_mut().zip(&*input) {
            *forget = 1.0 - input;
        }
    } else {
        layer.clipped(forget);
        f.apply(isa, forget);
    }
    layer.clipped(candidate);
    g.apply(isa, candidate);
    for (((cell, forget), input), candidate) in cell.iter_mut().zip(forget).zip(input).zip(candidate) {
        *cell = isa.mul_add(*forget, *cell, *input * *candidate);
    }
    if let Some(peepholes) = peepholes {
        add_products(isa, output, &peepholes[hidden..2 * hidden], cell);
    }
    layer.clipped(output);
    f.apply(isa, output);
    state.copy_from_slice(cell);
    h.apply(isa, state);
    for (state, output) in state.iter_mut().zip(output) {
        *state *= *output;
    }
}
