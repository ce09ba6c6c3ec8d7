//! Where an image is flattened before a matrix product, the transposition to ONNX's order of channels is taken out and the rows
//! of the constant matrix are permuted instead, once at load.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::LoadResult;
use crate::graph::{Dim, Graph, Node, NodeOp, ValueId};
use crate::op::{Axes, Op};

/// Rewrites every product of a flattened transposition with a constant matrix.
pub fn run(graph: &mut Graph) -> LoadResult<()> {
    let nodes = std::mem::take(&mut graph.nodes);
    let mut writers: Vec<Option<usize>> = vec![None; graph.values.len()];
    for (index, node) in nodes.iter().enumerate() {
        writers[node.output.index()] = Some(index);
    }
    let writer = |value: ValueId| writers.get(value.index()).copied().flatten().map(|index| &nodes[index]);
    for node in &nodes {
        let found = match node.op {
            NodeOp::Compute(Op::MatMul) => flattened(graph, node, &writer),
            _ => None,
        };
        let mut node = node.clone();
        if let Some((image, permutation)) = found
            && let Some(weight) = permuted_weight(graph, &node, image, &permutation)?
        {
            let dims = graph.tensor(node.inputs[0]).dims.clone();
            node.inputs = [graph.add_view(Arc::clone(&node.name), image, dims)?, weight].into_iter().collect();
        }
        graph.nodes.push(node);
    }
    Ok(())
}

/// The image and permutation, if `node` is a product of `[rows, all else]` of a transposition that keeps axis 0.
fn flattened<'a>(graph: &Graph, node: &Node, writer: &impl Fn(ValueId) -> Option<&'a Node>) -> Option<(ValueId, Axes)> {
    let view = writer(node.inputs[0]).filter(|view| view.op == NodeOp::View)?;
    let transposed = view.inputs[0];
    let transposition = writer(transposed)?;
    let NodeOp::Compute(Op::Transpose { permutation }) = &transposition.op else { return None };
    let (flat, unflat) = (&graph.tensor(view.output).dims, &graph.tensor(transposed).dims);
    let rows_kept = flat.len() == 2 && flat[0] == unflat[0] && permutation[0] == 0;
    let weight = graph.constant(node.inputs[1])?;
    (rows_kept && weight.shape().rank() == 2).then(|| (transposition.inputs[0], permutation.clone()))
}

/// The matrix with its rows in the order in which the image itself is stored; `None` when the budget does not allow it.
fn permuted_weight(graph: &mut Graph, node: &Node, image: ValueId, permutation: &Axes) -> LoadResult<Option<ValueId>> {
    let Some(weight) = graph.constant(node.inputs[1]).cloned() else { return Ok(None) };
    if !graph.charge_derived(weight.bytes().len()) {
        return Ok(None);
    }
    let stored = &graph.tensor(image).dims;
    let size = |axis: &usize| match stored[*axis] {
        Dim::Fixed(size) => size,
        Dim::Batch => 1,
    };
    let columns = weight.shape().dims()[1];
    let apart: SmallVec<[usize; 4]> = permutation[1..].iter().map(size).chain([columns]).collect();
    let rank = permutation.len();
    let mut back: Axes = (0..rank).collect();
    for (index, &axis) in permutation.iter().enumerate().skip(1) {
        back[axis - 1] = index - 1;
    }
    back[rank - 1] = rank - 1;
    let rows = weight.reshaped(insula_core::Shape::new(&apart)?)?.transposed(&back)?;
    let weight = rows.reshaped(weight.shape().clone())?;
    graph.add_constant(Arc::clone(&node.name), weight).map(Some)
}
