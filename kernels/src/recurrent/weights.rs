//! The weights of recurrent layers as products take them: for each direction the input's, the state's, and a GRU
//! candidate's own. Packed when a model is loaded, or during a run where they are known only then.

use super::{Cell, RecurrentShape};
use crate::float::Floats;
use crate::gemm::{PackedWeights, PanelList, Panels, Storage, fill_panels, panels_len};

/// The weights of a layer, owned.
#[derive(Debug)]
pub struct RecurrentWeights(Vec<PackedWeights>);

/// The weights of a layer, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct RecurrentFilters<'a>(PanelList<'a>);

/// One B of a layer.
#[derive(Debug, Clone, Copy)]
struct Part {
    of_state: bool,
    /// The gate that it begins with, and how many.
    first: usize,
    gates: usize,
}

impl Part {
    fn depth(self, shape: &RecurrentShape) -> usize {
        if self.of_state { shape.hidden } else { shape.input }
    }

    fn columns(self, shape: &RecurrentShape) -> usize {
        self.gates * shape.hidden
    }

    fn floats(self, shape: &RecurrentShape) -> usize {
        panels_len(self.depth(shape), self.columns(shape))
    }

    /// Element (k, n), of `[directions, gates * hidden, depth]`.
    fn weight(self, shape: &RecurrentShape, direction: usize, source: Source<'_>, k: usize, n: usize) -> f32 {
        let row = direction * shape.gate_columns() + self.first * shape.hidden + n;
        let values = if self.of_state { source.state } else { source.input };
        values.get(row * self.depth(shape) + k)
    }
}

/// W and R as ONNX has them.
#[derive(Debug, Clone, Copy)]
struct Source<'a> {
    input: Floats<'a>,
    state: Floats<'a>,
}

fn parts(cell: Cell) -> impl Iterator<Item = Part> {
    let candidate = matches!(cell, Cell::Gru { .. }).then_some(Part { of_state: true, first: 2, gates: 1 });
    let input = Part { of_state: false, first: 0, gates: cell.gates() };
    let state = Part { of_state: true, first: 0, gates: cell.plain_gates() };
    [input, state].into_iter().chain(candidate)
}

fn check(shape: &RecurrentShape, input: Floats<'_>, state: Floats<'_>) {
    let rows = shape.directions * shape.gate_columns();
    assert!(input.len() == rows * shape.input && state.len() == rows * shape.hidden, "weights of a recurrent layer");
}

impl RecurrentWeights {
    /// Packs `input`, `[directions, gates * hidden, input]`, and `state`, `[directions, gates * hidden, hidden]`.
    ///
    /// # Panics
    ///
    /// When they have other numbers of elements than `shape` says.
    pub fn pack(shape: &RecurrentShape, storage: Storage, input: Floats<'_>, state: Floats<'_>) -> RecurrentWeights {
        check(shape, input, state);
        let source = Source { input, state };
        let mut packed = Vec::new();
        for direction in 0..shape.directions {
            for part in parts(shape.cell) {
                let value = |k, n| part.weight(shape, direction, source, k, n);
                packed.push(PackedWeights::pack(storage, part.depth(shape), part.columns(shape), value));
            }
        }
        RecurrentWeights(packed)
    }

    /// As a layer takes them.
    pub fn filters(&self) -> RecurrentFilters<'_> {
        RecurrentFilters(PanelList::Packed(&self.0))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(PackedWeights::bytes).sum()
    }
}

/// Floats that the weights take when they are packed during a run.
pub fn recurrent_filter_floats(shape: &RecurrentShape) -> usize {
    direction_floats(shape) * shape.directions
}

fn direction_floats(shape: &RecurrentShape) -> usize {
    parts(shape.cell).map(|part| part.floats(shape)).sum()
}

impl<'a> RecurrentFilters<'a> {
    /// Packs weights as [`RecurrentWeights::pack`] does into `to`, which has [`recurrent_filter_floats`] floats.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn pack(
        shape: &RecurrentShape,
        input: Floats<'_>,
        state: Floats<'_>,
        to: &'a mut [f32],
    ) -> RecurrentFilters<'a> {
        check(shape, input, state);
        let source = Source { input, state };
        let mut rest = &mut *to;
        for direction in 0..shape.directions {
            for part in parts(shape.cell) {
                let (panels, behind) = rest.split_at_mut(part.floats(shape));
                let value = |k, n| part.weight(shape, direction, source, k, n);
                fill_panels(part.depth(shape), part.columns(shape), panels, value);
                rest = behind;
            }
        }
        RecurrentFilters(PanelList::Floats(to))
    }

    pub(super) fn input(&self, shape: &RecurrentShape, direction: usize) -> Panels<'a> {
        self.part(shape, direction, 0)
    }

    pub(super) fn state(&self, shape: &RecurrentShape, direction: usize) -> Panels<'a> {
        self.part(shape, direction, 1)
    }

    /// Of a GRU's candidate.
    pub(super) fn candidate(&self, shape: &RecurrentShape, direction: usize) -> Panels<'a> {
        self.part(shape, direction, 2)
    }

    fn part(&self, shape: &RecurrentShape, direction: usize, index: usize) -> Panels<'a> {
        let (mut before, mut found) = (direction * direction_floats(shape), None);
        let mut number = direction * parts(shape.cell).count();
        for part in parts(shape.cell).take(index + 1) {
            before += found.map_or(0, |last: Part| last.floats(shape));
            number += usize::from(found.is_some());
            found = Some(part);
        }
        let (depth, columns) = found.map_or((0, 0), |part| (part.depth(shape), part.columns(shape)));
        self.0.panels(number, before, depth, columns)
    }
}
