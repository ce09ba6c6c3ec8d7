//! Recognises functions that exporters write out in several nodes, and puts the one operation in their place: GELU, Swish,
//! HardSwish and layer normalisation. A node is replaced where it stands; what it no longer reads dies later, unless others read
//! it. One family a file.

mod activation;
mod normalization;

use crate::error::LoadResult;
use crate::graph::{Graph, Node, NodeOp, ValueId};
use crate::op::{BinaryOp, Function, Op};
use crate::op::{Elementwise, Reduce};

/// Replaces all that are found, in order, so that what one replacement completes the next finds.
pub fn run(graph: &mut Graph) -> LoadResult<()> {
    let (writers, readers) = (graph.writers(), graph.readers());
    for index in 0..graph.nodes.len() {
        let patterns = Patterns { graph, writers: &writers, readers: &readers };
        let found = patterns.binary(index).and_then(|(op, left, right)| {
            activation::found(&patterns, op, left, right).or_else(|| normalization::found(&patterns, op, left, right))
        });
        if let Some(Found { op, inputs }) = found {
            let node = &mut graph.nodes[index];
            node.op = NodeOp::Compute(op);
            node.inputs = inputs.into();
        }
    }
    Ok(())
}

/// What stands for a node.
struct Found {
    op: Op,
    inputs: Vec<ValueId>,
}

/// The graph as the patterns ask about it.
struct Patterns<'a> {
    graph: &'a Graph,
    writers: &'a [Option<usize>],
    readers: &'a [u32],
}

impl Patterns<'_> {
    /// What node `index` is if it is arithmetic of floats with nothing fused to it.
    fn binary(&self, index: usize) -> Option<(BinaryOp, ValueId, ValueId)> {
        let node = &self.graph.nodes[index];
        match &node.op {
            NodeOp::Compute(Op::Binary(op)) if node.epilogue.is_none() => Some((*op, node.inputs[0], node.inputs[1])),
            _ => None,
        }
    }

    /// The operation and the inputs behind `value`, with nothing fused to it.
    fn operation(&self, value: ValueId) -> Option<(&Op, &[ValueId])> {
        let node: &Node = &self.graph.nodes[self.writers[value.index()]?];
        match &node.op {
            NodeOp::Compute(op) if node.epilogue.is_none() => Some((op, &node.inputs)),
            _ => None,
        }
    }

    /// The two operands of `value` if it is `wanted` of two tensors.
    fn operands(&self, value: ValueId, wanted: BinaryOp) -> Option<(ValueId, ValueId)> {
        match self.operation(value)? {
            (Op::Binary(op), [left, right]) if *op == wanted => Some((*left, *right)),
            _ => None,
        }
    }

    /// The argument of `value` if it is `wanted` of one.
    fn argument(&self, value: ValueId, wanted: Function) -> Option<ValueId> {
        match self.operation(value)? {
            (Op::Elementwise(Elementwise::Function(function)), [argument]) if *function == wanted => Some(*argument),
            _ => None,
        }
    }

    /// The tensor and the attributes behind `value` if it is a reduction.
    fn reduction(&self, value: ValueId) -> Option<(&Reduce, ValueId)> {
        match self.operation(value)? {
            (Op::Reduce(reduce), [input]) => Some((reduce, *input)),
            _ => None,
        }
    }

    /// The number that `value` is, if it is a constant float with one element.
    fn number(&self, value: ValueId) -> Option<f32> {
        let constant = self.graph.constant(value).filter(|constant| constant.shape().elements() == 1)?;
        constant.to_f32().ok().map(|elements| elements[0])
    }

    /// A tensor and a number added to it, if `value` is their sum.
    fn plus_number(&self, value: ValueId) -> Option<(ValueId, f32)> {
        let (left, right) = self.operands(value, BinaryOp::Add)?;
        self.number(right).map(|number| (left, number)).or_else(|| self.number(left).map(|number| (right, number)))
    }
}

/// Whether `found` is `wanted`, up to its rounding to half.
fn close(found: f32, wanted: f32) -> bool {
    (found - wanted).abs() <= wanted.abs() * 1e-3
}
