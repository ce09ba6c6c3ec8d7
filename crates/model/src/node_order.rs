//! The order in which a file's nodes can be read: every value written once and before it is read. Duplicate outputs, missing
//! inputs and cycles are refused. It works on names alone, without recursion: chains may be as long as the file.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::error::{LoadError, LoadResult, quoted};
use crate::onnx::{GraphProto, NodeProto};

/// How messages name node number `index`: by its name, or by what it writes.
pub fn node_label(node: &NodeProto, index: usize) -> String {
    match node.output.iter().find(|output| !output.is_empty()) {
        _ if !node.name.is_empty() => format!("node {}", quoted(&node.name)),
        Some(output) => format!("node {index}, which writes {},", quoted(output)),
        None => format!("node {index}"),
    }
}

/// The positions of `nodes` in an order in which each follows those it reads from; the file's order where it is one.
/// `given` are the names of inputs and constants.
pub fn node_order(nodes: &[NodeProto], given: impl Fn(&str) -> bool) -> LoadResult<Vec<usize>> {
    let writers = writers(nodes, &given)?;
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut missing: Vec<usize> = vec![0; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        for input in node.input.iter().filter(|input| !input.is_empty() && !given(input)) {
            let Some(&writer) = writers.get(input.as_str()) else {
                return Err(LoadError::malformed(format!(
                    "{} reads {}, which no node writes and which is neither an input nor a constant",
                    node_label(node, index),
                    quoted(input)
                )));
            };
            readers[writer].push(index);
            missing[index] += 1;
        }
        for writer in captured(node, &writers).into_iter().filter(|writer| *writer != index) {
            readers[writer].push(index);
            missing[index] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|&index| missing[index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &reader in &readers[index] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                ready.push(Reverse(reader));
            }
        }
    }
    match order.len() == nodes.len() {
        true => Ok(order),
        false => Err(cycle(nodes, &writers, &missing)),
    }
}

/// The nodes whose outputs the branches of `node` read without naming them among its inputs.
fn captured(node: &NodeProto, writers: &HashMap<&str, usize>) -> Vec<usize> {
    let mut open: Vec<&GraphProto> = node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()).collect();
    let mut found = HashSet::new();
    while let Some(branch) = open.pop() {
        let outputs = branch.output.iter().map(|output| &output.name);
        let read = branch.node.iter().flat_map(|node| &node.input).chain(outputs);
        found.extend(read.filter_map(|name| writers.get(name.as_str()).copied()));
        let inner = branch.node.iter().flat_map(|node| &node.attribute).filter_map(|attribute| attribute.g.as_ref());
        open.extend(inner);
    }
    found.into_iter().collect()
}

fn writers<'a>(nodes: &'a [NodeProto], given: &impl Fn(&str) -> bool) -> LoadResult<HashMap<&'a str, usize>> {
    let mut writers = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if given(output) || writers.insert(output.as_str(), index).is_some() {
                return Err(LoadError::malformed(format!(
                    "{} writes {}, which is an input, a constant or another node's output already",
                    node_label(node, index),
                    quoted(output)
                )));
            }
        }
    }
    Ok(writers)
}

/// Names a node on a cycle: from any stuck node, going back from stuck node to stuck node must come round.
fn cycle(nodes: &[NodeProto], writers: &HashMap<&str, usize>, missing: &[usize]) -> LoadError {
    let mut at = missing.iter().position(|&missing| missing > 0).unwrap_or(0);
    let mut seen = vec![false; nodes.len()];
    while !seen[at] {
        seen[at] = true;
        let stuck = |input: &String| writers.get(input.as_str()).copied().filter(|&writer| missing[writer] > 0);
        at = nodes[at].input.iter().find_map(stuck).unwrap_or(at);
    }
    LoadError::malformed(format!(
        "{} reads its own output by way of others: the graph has a cycle",
        node_label(&nodes[at], at)
    ))
}
