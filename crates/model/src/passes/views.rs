//! Merges views of views and removes those that change nothing, so that what is left is one view between a tensor and each
//! other shape it is read in. It moves no element.

use crate::constant::ConstantId;
use crate::error::LoadResult;
use crate::graph::{Graph, Node, NodeOp, ValueId, ValueSource};

/// Merges and removes views.
pub fn run(graph: &mut Graph) -> LoadResult<()> {
    let mut same: Vec<ValueId> = (0..graph.values.len() as u32).map(ValueId).collect();
    let mut viewed: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    let nodes = std::mem::take(&mut graph.nodes);
    for mut node in nodes {
        for input in node.inputs.iter_mut().chain(&mut node.epilogue.residual) {
            *input = same[input.index()];
        }
        if node.op != NodeOp::View {
            graph.nodes.push(node);
            continue;
        }
        let root = viewed[node.inputs[0].index()].unwrap_or(node.inputs[0]);
        node.inputs[0] = root;
        if graph.tensor(root).dims == graph.tensor(node.output).dims {
            same[node.output.index()] = root;
        } else if !reshape_constant(graph, &node)? {
            viewed[node.output.index()] = Some(root);
            graph.nodes.push(node);
        }
    }
    for output in &mut graph.outputs {
        output.value = same[output.value.index()];
    }
    Ok(())
}

/// A view of a constant is a constant.
fn reshape_constant(graph: &mut Graph, node: &Node) -> LoadResult<bool> {
    let Some(constant) = graph.constant(node.inputs[0]) else { return Ok(false) };
    let reshaped = constant.reshaped(graph.tensor(node.output).shape(1)?)?;
    let id = ConstantId(graph.constants.len() as u32);
    graph.constants.push(reshaped);
    graph.values[node.output.index()].source = ValueSource::Constant(id);
    Ok(true)
}
