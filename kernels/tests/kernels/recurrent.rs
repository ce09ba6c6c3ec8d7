//! Recurrent layers against their definitions in double precision, and sequences against themselves in other batches.

use insula_kernels::gemm::Storage;
use insula_kernels::recurrent::{
    Cell, GateFunction, Recurrent, RecurrentFilters, RecurrentMemory, RecurrentShape, RecurrentWeights,
    recurrent_filter_floats,
};
use insula_kernels::{Floats, FloatsMut, Isa};
use proptest::prelude::*;

use crate::numbers::{bits, instruction_sets, scratch, values};

#[derive(Debug, Clone)]
struct Case {
    shape: RecurrentShape,
    input: Vec<f32>,
    weights: [Vec<f32>; 2],
    bias: Vec<f32>,
    peepholes: Vec<f32>,
    initial: [Vec<f32>; 2],
    lengths: Vec<i32>,
    clip: f32,
}

impl Case {
    fn new(shape: RecurrentShape) -> Case {
        let rows = shape.directions * shape.cell.gates() * shape.hidden;
        let seed = (shape.steps * 31 + shape.hidden) as u64;
        let states = shape.directions * shape.batch * shape.hidden;
        Case {
            shape,
            input: values(shape.rows() * shape.input, seed),
            weights: [values(rows * shape.input, seed + 1), values(rows * shape.hidden, seed + 2)],
            bias: values(2 * rows, seed + 3),
            peepholes: values(shape.directions * 3 * shape.hidden, seed + 4),
            initial: [values(states, seed + 5), values(states, seed + 6)],
            lengths: (0..shape.batch).map(|i| ((i + 1) % (shape.steps + 1)) as i32).collect(),
            clip: 1.5,
        }
    }

    fn run(&self, isa: Isa, at_load: bool) -> Vec<f32> {
        let shape = &self.shape;
        let [input, state] = self.weights.each_ref().map(|weights| Floats::F32(weights));
        let (owned, mut packed) =
            (RecurrentWeights::pack(shape, Storage::F32, input, state), vec![f32::NAN; recurrent_filter_floats(shape)]);
        let borrowed = RecurrentFilters::pack(shape, input, state, &mut packed);
        let weights = if at_load { owned.filters() } else { borrowed };
        let rows = (shape.steps + shape.cell.last_states()) * shape.directions * shape.batch;
        let mut out = vec![f32::NAN; rows * shape.hidden];
        let mut scratch = scratch(RecurrentMemory::bytes(shape));
        let functions = match shape.cell {
            Cell::Plain => [GateFunction::Tanh; 3],
            Cell::Gru { .. } | Cell::Lstm { .. } => [GateFunction::Sigmoid, GateFunction::Tanh, GateFunction::Tanh],
        };
        for direction in 0..shape.directions {
            let layer = Recurrent {
                isa,
                shape: *shape,
                direction,
                reverse: direction == 1,
                weights,
                bias: Some(Floats::F32(&self.bias)),
                peepholes: matches!(shape.cell, Cell::Lstm { .. }).then_some(Floats::F32(&self.peepholes)),
                functions,
                clip: Some(self.clip),
                lengths: Some(&self.lengths),
            };
            let mut memory = RecurrentMemory::new(shape, bytemuck::cast_slice_mut(&mut scratch));
            let [hidden, cell] = self.initial.each_ref().map(|state| Some(Floats::F32(state)));
            layer.start(&mut memory, hidden, cell);
            layer.project(0..shape.rows(), Floats::F32(&self.input), &mut memory);
            for step in 0..shape.steps {
                layer.step(step, &mut memory, FloatsMut::F32(&mut out));
            }
            layer.finish(&memory, FloatsMut::F32(&mut out));
        }
        out
    }

    /// The outputs and last states of one sequence in one direction.
    fn exact(&self, direction: usize, sequence: usize) -> Vec<Vec<f64>> {
        let shape = &self.shape;
        let (hidden, gates) = (shape.hidden, shape.cell.gates());
        let start = (if shape.batch_first {
            sequence * shape.directions + direction
        } else {
            direction * shape.batch + sequence
        }) * hidden;
        let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let [mut state, mut cell] = self.initial.each_ref().map(|initial| wide(&initial[start..start + hidden]));
        let length = self.lengths[sequence] as usize;
        let mut outputs = vec![vec![0.0; hidden]; shape.steps];
        for step in 0..length {
            let time = if direction == 1 { length - 1 - step } else { step };
            let row = if shape.batch_first { sequence * shape.steps + time } else { time * shape.batch + sequence };
            let x = wide(&self.input[row * shape.input..(row + 1) * shape.input]);
            let dot = |which: usize, row: usize, with: &[f64]| -> f64 {
                let row = direction * gates * hidden + row;
                with.iter().enumerate().map(|(k, x)| x * f64::from(self.weights[which][row * with.len() + k])).sum()
            };
            let bias = |which: usize, row: usize| f64::from(self.bias[(direction * 2 + which) * gates * hidden + row]);
            let limit = f64::from(self.clip);
            let clip = |x: f64| x.clamp(-limit, limit);
            let sigmoid = |x: f64| 1.0 / (1.0 + (-clip(x)).exp());
            let linear = |row: usize| dot(0, row, &x) + bias(0, row) + dot(1, row, &state) + bias(1, row);
            let peephole = |gate: usize, j: usize| f64::from(self.peepholes[(direction * 3 + gate) * hidden + j]);
            let mut next = vec![0.0; hidden];
            match shape.cell {
                Cell::Plain => next = (0..hidden).map(|j| clip(linear(j)).tanh()).collect(),
                Cell::Gru { linear_before_reset } => {
                    let reset: Vec<f64> = (0..hidden).map(|j| sigmoid(linear(hidden + j))).collect();
                    let gated: Vec<f64> = reset.iter().zip(&state).map(|(r, h)| r * h).collect();
                    for j in 0..hidden {
                        let row = 2 * hidden + j;
                        let recurrent = match linear_before_reset {
                            true => reset[j] * (dot(1, row, &state) + bias(1, row)),
                            false => dot(1, row, &gated) + bias(1, row),
                        };
                        let candidate = clip(dot(0, row, &x) + bias(0, row) + recurrent).tanh();
                        let update = sigmoid(linear(j));
                        next[j] = (1.0 - update) * candidate + update * state[j];
                    }
                }
                Cell::Lstm { input_forget } => {
                    for j in 0..hidden {
                        let input = sigmoid(linear(j) + peephole(0, j) * cell[j]);
                        let forget = match input_forget {
                            true => 1.0 - input,
                            false => sigmoid(linear(2 * hidden + j) + peephole(2, j) * cell[j]),
                        };
                        cell[j] = forget * cell[j] + input * clip(linear(3 * hidden + j)).tanh();
                        let output = sigmoid(linear(hidden + j) + peephole(1, j) * cell[j]);
                        next[j] = output * cell[j].tanh();
                    }
                }
            }
            state = next;
            outputs[time] = state.clone();
        }
        outputs.push(state);
        if shape.cell.last_states() == 2 {
            outputs.push(cell);
        }
        outputs
    }
}

fn cells() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Plain),
        any::<bool>().prop_map(|linear_before_reset| Cell::Gru { linear_before_reset }),
        any::<bool>().prop_map(|input_forget| Cell::Lstm { input_forget }),
    ]
}

fn output_row(shape: &RecurrentShape, time: usize, direction: usize, sequence: usize) -> usize {
    match shape.batch_first {
        true => (sequence * (shape.steps + shape.cell.last_states()) + time) * shape.directions + direction,
        false => (time * shape.directions + direction) * shape.batch + sequence,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn layers_agree_with_their_definitions(
        cell in cells(), steps in 1usize..6, batch in 1usize..9, sizes in (1usize..20, 1usize..20), directions in 1usize..3, batch_first: bool
    ) {
        let case = Case::new(RecurrentShape { cell, steps, batch, input: sizes.0, hidden: sizes.1, directions, batch_first });
        for isa in instruction_sets() {
            let found = case.run(isa, true);
            prop_assert_eq!(bits(&found), bits(&case.run(isa, false)));
            for (direction, sequence) in (0..directions).flat_map(|d| (0..batch).map(move |s| (d, s))) {
                for (time, exact) in case.exact(direction, sequence).iter().enumerate() {
                    let row = output_row(&case.shape, time, direction, sequence) * sizes.1;
                    for (found, exact) in found[row..row + sizes.1].iter().zip(exact) {
                        prop_assert!((f64::from(*found) - exact).abs() < 2e-4, "{found} for {exact} at step {time}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_sequence_gives_the_same_bits_alone() {
    for cell in [Cell::Gru { linear_before_reset: false }, Cell::Lstm { input_forget: false }] {
        let shape =
            RecurrentShape { cell, steps: 5, batch: 8, input: 30, hidden: 24, directions: 1, batch_first: true };
        let case = Case { lengths: vec![5; 8], ..Case::new(shape) };
        let all = case.run(Isa::detect(), true);
        let mut alone = case.clone();
        alone.shape.batch = 1;
        let found = alone.run(Isa::detect(), true);
        assert_eq!(bits(&found), bits(&all[..found.len()]));
    }
}
