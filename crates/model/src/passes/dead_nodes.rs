//! Removes nodes, values and constants that no output depends on, and numbers the rest anew. Inputs stay.

use crate::constant::ConstantId;
use crate::error::LoadResult;
use crate::graph::{Graph, ValueId, ValueSource};

/// Removes what is dead.
pub fn run(graph: &mut Graph) -> LoadResult<()> {
    let mut live = vec![false; graph.values.len()];
    for &value in graph.inputs.iter().chain(graph.outputs.iter().map(|output| &output.value)) {
        live[value.index()] = true;
    }
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if live[node.output.index()] {
            node.reads().for_each(|value| live[value.index()] = true);
            kept.push(node);
        }
    }
    kept.reverse();
    graph.nodes = kept;
    let biases: Vec<ConstantId> = graph.nodes.iter().filter_map(|node| node.epilogue.bias).collect();
    let constants = renumber_constants(graph, &live, &biases);
    let values = renumber_values(graph, &live, &constants);
    let renumber = |value: &mut ValueId| *value = values[value.index()];
    for node in &mut graph.nodes {
        node.inputs.iter_mut().chain(&mut node.epilogue.residual).for_each(renumber);
        renumber(&mut node.output);
        if let Some(bias) = &mut node.epilogue.bias {
            *bias = constants[bias.index()];
        }
    }
    graph.inputs.iter_mut().for_each(renumber);
    graph.outputs.iter_mut().for_each(|output| renumber(&mut output.value));
    Ok(())
}

fn renumber_constants(graph: &mut Graph, live: &[bool], biases: &[ConstantId]) -> Vec<ConstantId> {
    let mut used = vec![false; graph.constants.len()];
    for (value, _) in graph.values.iter().zip(live).filter(|(_, live)| **live) {
        if let ValueSource::Constant(id) = value.source {
            used[id.index()] = true;
        }
    }
    biases.iter().for_each(|id| used[id.index()] = true);
    let mut next = 0;
    let numbers = used
        .iter()
        .map(|used| {
            let number = ConstantId(next);
            next += u32::from(*used);
            number
        })
        .collect();
    let mut index = 0;
    graph.constants.retain(|_| {
        index += 1;
        used[index - 1]
    });
    numbers
}

fn renumber_values(graph: &mut Graph, live: &[bool], constants: &[ConstantId]) -> Vec<ValueId> {
    let mut numbers = vec![ValueId(0); graph.values.len()];
    let mut kept = Vec::new();
    for (index, mut value) in std::mem::take(&mut graph.values).into_iter().enumerate() {
        if !live[index] {
            continue;
        }
        if let ValueSource::Constant(id) = &mut value.source {
            *id = constants[id.index()];
        }
        numbers[index] = ValueId(kept.len() as u32);
        kept.push(value);
    }
    graph.values = kept;
    numbers
}
