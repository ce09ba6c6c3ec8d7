//! Fuses what follows a Conv, a MatMul or a Binary into it: scales and biases a channel (which is how batch normalisation
//! comes), a residual, an activation. A tensor is fused away only if nothing else reads it and it is no output. One rule a file;
//! this file walks the graph once, in order, so that chains fuse link by link.

mod activation;
mod bias;
mod residual;
mod scale;

use crate::constant::Constant;
use crate::error::LoadResult;
use crate::graph::{Dim, Graph, Node, NodeOp, ValueId};
use crate::op::{BinaryOp, Op};
use crate::shape_inference;

/// Fuses all that can be.
pub fn run(graph: &mut Graph) -> LoadResult<()> {
    let writers = graph.writers();
    let readers = graph.readers();
    let nodes = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
    let mut fusion = Fusion { graph, nodes, writers, readers };
    for index in 0..fusion.nodes.len() {
        let _fused = scale::fuse(&mut fusion, index)?
            || bias::fuse(&mut fusion, index)?
            || residual::fuse(&mut fusion, index)?
            || activation::fuse(&mut fusion, index)?;
    }
    fusion.graph.nodes = fusion.nodes.into_iter().flatten().collect();
    Ok(())
}

struct Fusion<'a> {
    graph: &'a mut Graph,
    /// `None`: fused into another.
    nodes: Vec<Option<Node>>,
    writers: Vec<Option<usize>>,
    readers: Vec<u32>,
}

impl Fusion<'_> {
    /// The node that writes `value`, if it can still take an activation on: nothing else reads `value`, it has none yet,
    /// and its type is one that things are fused in.
    fn open_writer(&self, value: ValueId) -> Option<(usize, &Op)> {
        let index = self.writers.get(value.index()).copied().flatten()?;
        let node = self.nodes[index].as_ref()?;
        let NodeOp::Compute(op) = &node.op else { return None };
        let open = self.readers[value.index()] == 1
            && node.epilogue.activation.is_none()
            && shape_inference::is_arithmetic(self.graph.tensor(value).dtype);
        open.then_some((index, op))
    }

    /// The node that writes `value`, if it can still take a scale, a bias or a residual on: all that comes before the activation.
    fn linear_writer(&self, value: ValueId) -> Option<(usize, &Op)> {
        self.open_writer(value)
            .filter(|(index, _)| self.nodes[*index].as_ref().is_some_and(|node| node.epilogue.residual.is_none()))
    }

    /// If node `index` is arithmetic of a tensor with a constant and keeps the tensor's shape: the operation, the tensor and the
    /// constant. The constant is on the right, but for Add and Mul either side does.
    fn with_constant(&self, index: usize) -> Option<(BinaryOp, ValueId, Constant)> {
        let node = self.nodes[index].as_ref().filter(|node| node.epilogue.is_none())?;
        let NodeOp::Compute(Op::Binary(op)) = node.op else { return None };
        let (left, right) = (node.inputs[0], node.inputs[1]);
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul);
        let (value, constant) = match (self.graph.constant(left), self.graph.constant(right)) {
            (None, Some(constant)) => (left, constant.clone()),
            (Some(constant), None) if commutes => (right, constant.clone()),
            _ => return None,
        };
        (self.graph.tensor(value) == self.graph.tensor(node.output)).then_some((op, value, constant))
    }

    /// `constant` as one f32 for each element of the last dimension of `value`, if it varies along no other.
    fn along_last(&self, value: ValueId, constant: &Constant) -> Option<Vec<f32>> {
        let Dim::Fixed(last) = *self.graph.tensor(value).dims.last()? else { return None };
        if last.saturating_mul(4) as u64 > self.graph.derived_budget {
            return None;
        }
        let elements = constant.to_f32().ok()?;
        let dims = constant.shape().dims();
        match elements.len() {
            1 => Some(vec![elements[0]; last]),
            count if count == last && dims.last() == Some(&last) => Some(elements.into_owned()),
            _ => None,
        }
    }

    /// Node `into` writes what node `index` wrote, which is gone.
    fn absorb(&mut self, into: usize, index: usize) {
        if let Some(gone) = self.nodes[index].take()
            && let Some(node) = &mut self.nodes[into]
        {
            node.output = gone.output;
            self.writers[gone.output.index()] = Some(into);
        }
    }
}
