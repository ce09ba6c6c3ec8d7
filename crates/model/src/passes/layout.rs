//! Moves transpositions towards the outputs and lets them meet and vanish, so that images stay `[N, H, W, C]` from the first
//! convolution on. A tensor that has been passed through one is carried as (what is stored, the permutation still owed); an
//! operation that does not care about the order of axes works on what is stored, one that does gets the permutation done.
//! Nothing is computed here: constants are permuted, nodes and axes rewritten.

mod movements;

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::LoadResult;
use crate::graph::{Graph, Node, NodeOp, TensorType, ValueId, moves_elements};
use crate::op::{ArgExtreme, Axes, Cumulative, Elementwise, Op, Reduce};
use crate::shape_inference::{self, Dims};

/// Rewrites the graph.
pub fn run(graph: &mut Graph) -> LoadResult<()> {
    let stored = (0..graph.values.len() as u32).map(|id| Stored { value: ValueId(id), owed: None }).collect();
    let nodes = std::mem::take(&mut graph.nodes);
    let mut layout = Layout { graph, stored, done: HashMap::new() };
    for node in nodes {
        layout.place(node)?;
    }
    for index in 0..layout.graph.outputs.len() {
        let output = layout.graph.outputs[index].value;
        let name = Arc::clone(&layout.graph.values[output.index()].name);
        layout.graph.outputs[index].value = layout.settle(output, &name)?;
    }
    Ok(())
}

/// A value of the old graph: `value` of the new one, with axis `i` of the old at axis `owed[i]`.
#[derive(Debug, Clone)]
struct Stored {
    value: ValueId,
    owed: Option<Axes>,
}

struct Layout<'a> {
    graph: &'a mut Graph,
    /// By the old graph's values.
    stored: Vec<Stored>,
    /// Transpositions that are in the graph already.
    done: HashMap<(ValueId, Axes), ValueId>,
}

impl Layout<'_> {
    fn place(&mut self, node: Node) -> LoadResult<()> {
        let op = match &node.op {
            NodeOp::Compute(Op::Transpose { permutation }) => {
                let input = self.stored[node.inputs[0].index()].clone();
                self.stored[node.output.index()] = input.transposed(permutation);
                return Ok(());
            }
            NodeOp::Compute(op) => op.clone(),
            NodeOp::View => return self.settle_inputs(node),
        };
        let any_owed = node.inputs.iter().any(|input| self.stored[input.index()].owed.is_some());
        if !any_owed {
            return self.settle_inputs(node);
        }
        let placed = match op {
            Op::Activation(_)
            | Op::Cast { .. }
            | Op::Elementwise(Elementwise::Function(_) | Elementwise::BitCast { .. }) => {
                self.unary(&node, op, |_| None)?
            }
            Op::Binary(_) | Op::Elementwise(_) => self.broadcast(&node, op)?,
            Op::Softmax { axis, logarithm } => {
                let op = Op::Softmax { axis: self.stored_axis(&node, axis), logarithm };
                self.unary(&node, op, |_| None)?
            }
            Op::Cumulative(cumulative) => {
                let axis = self.stored_axis(&node, cumulative.axis);
                self.unary(&node, Op::Cumulative(Cumulative { axis, ..cumulative }), |_| None)?
            }
            Op::Reduce(Reduce { reduction, axes, keep_dims }) => {
                let mut moved: Axes = axes.iter().map(|&axis| self.stored_axis(&node, axis)).collect();
                moved.sort_unstable();
                let op = Op::Reduce(Reduce { reduction, axes: moved, keep_dims });
                self.unary(&node, op, |owed| (!keep_dims).then(|| without(owed, &axes)))?
            }
            Op::ArgExtreme(arg) => {
                let op = Op::ArgExtreme(ArgExtreme { axis: self.stored_axis(&node, arg.axis), ..arg });
                self.unary(&node, op, |owed| (!arg.keep_dims).then(|| without(owed, &[arg.axis])))?
            }
            Op::Conv(_)
            | Op::ConvTranspose(_)
            | Op::DeformConv(_)
            | Op::MaxPool(_)
            | Op::MaxPositions(_)
            | Op::AveragePool(_)
            | Op::LpPool(_)
            | Op::Recurrent(_)
            | Op::MatMul
            | Op::Normalize { .. }
            | Op::Transpose { .. } => None,
            Op::Move(movement) => self.movement(&node, movement)?,
            Op::Sample(sampling) => self.sampling(&node, sampling)?,
        };
        match placed {
            Some(stored) => {
                self.stored[node.output.index()] = stored;
                Ok(())
            }
            None => self.settle_inputs(node),
        }
    }

    /// Where `axis` of the old graph's input is in what is stored.
    fn stored_axis(&self, node: &Node, axis: usize) -> usize {
        self.stored[node.inputs[0].index()].owed.as_ref().map_or(axis, |owed| owed[axis])
    }

    /// Keeps the node as it is, on settled inputs.
    fn settle_inputs(&mut self, mut node: Node) -> LoadResult<()> {
        for input in &mut node.inputs {
            *input = self.settle(*input, &node.name)?;
        }
        self.graph.nodes.push(node);
        Ok(())
    }

    /// The old graph's `value` with nothing owed.
    fn settle(&mut self, value: ValueId, name: &Arc<str>) -> LoadResult<ValueId> {
        let stored = self.stored[value.index()].clone();
        self.transposed(stored, name)
    }

    fn transposed(&mut self, stored: Stored, name: &Arc<str>) -> LoadResult<ValueId> {
        let Some(owed) = stored.owed else { return Ok(stored.value) };
        if let Some(&value) = self.done.get(&(stored.value, owed.clone())) {
            return Ok(value);
        }
        let value = self.graph.add_transpose(Arc::clone(name), stored.value, &owed)?;
        self.done.insert((stored.value, owed), value);
        Ok(value)
    }

    /// `op`, already with stored axes, on what is stored. `owed_after` gives what the output owes where that is not what the input
    /// does. `None` when the output would owe a movement of elements that are not floats.
    fn unary(&mut self, node: &Node, op: Op, owed_after: impl Fn(&Axes) -> Option<Axes>) -> LoadResult<Option<Stored>> {
        let input = self.stored[node.inputs[0].index()].clone();
        let Some(owed) = input.owed else { return Ok(None) };
        let owed = owed_after(&owed).unwrap_or(owed);
        let TensorType { dtype, dims } = shape_inference::infer(&op, &[self.graph.tensor(input.value)])?;
        if !shape_inference::is_arithmetic(dtype) && moves_elements(&dims, &owed) {
            return Ok(None);
        }
        let value = self.graph.add_compute(Arc::clone(&node.name), op, &[input.value])?;
        Ok(Some(Stored::new(value, owed)))
    }

    /// In the order of axes of the first input that owes a permutation of the output's rank. The others join: by what they owe
    /// themselves, by their constants being permuted, or by being transposed. `None` when one has fewer dimensions and is no constant.
    fn broadcast(&mut self, node: &Node, op: Op) -> LoadResult<Option<Stored>> {
        let rank = self.graph.tensor(node.output).dims.len();
        let owed = node.inputs.iter().find_map(|input| {
            let stored = &self.stored[input.index()];
            stored.owed.as_ref().filter(|owed| owed.len() == rank)
        });
        let Some(owed) = owed.cloned() else { return Ok(None) };
        let back = inverse(&owed);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for &input in &node.inputs {
            let mut stored = self.stored[input.index()].clone();
            let dims = &self.graph.tensor(input).dims;
            let missing = rank - dims.len();
            if missing > 0 {
                if stored.owed.is_some() || self.graph.constant(stored.value).is_none() {
                    return Ok(None);
                }
                let ones = std::iter::repeat_n(crate::graph::Dim::Fixed(1), missing);
                let extended: Dims = ones.chain(dims.iter().copied()).collect();
                stored.value = self.graph.add_view(Arc::clone(&node.name), stored.value, extended)?;
            }
            inputs.push(self.transposed(stored.transposed(&back), &node.name)?);
        }
        let value = self.graph.add_compute(Arc::clone(&node.name), op, &inputs)?;
        Ok(Some(Stored::new(value, owed)))
    }
}

impl Stored {
    fn new(value: ValueId, owed: Axes) -> Stored {
        let nothing = owed.iter().enumerate().all(|(index, &axis)| index == axis);
        Stored { value, owed: (!nothing).then_some(owed) }
    }

    /// Owing `permutation` on top.
    fn transposed(&self, permutation: &Axes) -> Stored {
        match &self.owed {
            None => Stored::new(self.value, permutation.clone()),
            Some(owed) => Stored::new(self.value, permutation.iter().map(|&axis| owed[axis]).collect()),
        }
    }
}

/// What is owed once `axes` (of the old order) are reduced away.
fn without(owed: &Axes, axes: &[usize]) -> Axes {
    let kept: Axes =
        owed.iter().enumerate().filter(|(index, _)| !axes.contains(index)).map(|(_, &axis)| axis).collect();
    kept.iter().map(|axis| kept.iter().filter(|other| *other < axis).count()).collect()
}

fn inverse(permutation: &Axes) -> Axes {
    let mut inverse = permutation.clone();
    for (index, &axis) in permutation.iter().enumerate() {
        inverse[axis] = index;
    }
    inverse
}
