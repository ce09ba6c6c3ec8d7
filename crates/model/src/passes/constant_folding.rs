//! Computes at load what depends on constants alone, by asking a device through [`ConstantFolder`]. It executes nothing itself
//! and is bounded in work and memory: what would cost more stays in the graph.

use std::fmt;

use insula_core::Result;

use crate::constant::{Constant, ConstantId};
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, Graph, Node, NodeOp, ValueSource};
use crate::op::Op;

/// A device that computes one operation on constants. Handed to the loader, so that this crate runs nothing.
pub trait ConstantFolder: Send + Sync + fmt::Debug {
    /// The output of `op` (without an epilogue) on `inputs`; `None` when this folder does not compute it, and the node then stays.
    fn fold(&self, op: &Op, inputs: &[&Constant]) -> Result<Option<Constant>>;
}

/// A folder that computes nothing: every node stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFolding;

impl ConstantFolder for NoFolding {
    fn fold(&self, _op: &Op, _inputs: &[&Constant]) -> Result<Option<Constant>> {
        Ok(None)
    }
}

/// Multiplications and additions that folding one model may take.
const MAX_WORK: u64 = 1 << 31;

/// Turns every node whose inputs are constants into a constant.
pub fn run(graph: &mut Graph, folder: &dyn ConstantFolder) -> LoadResult<()> {
    let mut work_left = MAX_WORK;
    let nodes = std::mem::take(&mut graph.nodes);
    for node in nodes {
        match folded(graph, &node, folder, &mut work_left)? {
            Some(constant) => set_constant(graph, &node, constant)?,
            None => graph.nodes.push(node),
        }
    }
    Ok(())
}

fn folded(
    graph: &mut Graph,
    node: &Node,
    folder: &dyn ConstantFolder,
    work_left: &mut u64,
) -> LoadResult<Option<Constant>> {
    if node.inputs.iter().any(|&input| graph.constant(input).is_none()) || !node.epilogue.is_none() {
        return Ok(None);
    }
    let expected = graph.tensor(node.output).clone();
    let shape = expected.shape(1)?;
    let op = match &node.op {
        NodeOp::View => {
            return Ok(graph.constant(node.inputs[0]).map(|constant| constant.reshaped(shape)).transpose()?);
        }
        NodeOp::Compute(op) => op,
    };
    let Some(bytes) = shape.bytes(expected.dtype)? else { return Ok(None) };
    let Some(left) = work_left.checked_sub(work(graph, node, op)) else { return Ok(None) };
    if !graph.charge_derived(bytes) {
        return Ok(None);
    }
    *work_left = left;
    let inputs: Vec<&Constant> = node.inputs.iter().filter_map(|&input| graph.constant(input)).collect();
    let constant = folder.fold(op, &inputs).map_err(|error| {
        LoadError::from(error).context(format_args!("node `{}`, which depends on constants alone", node.name))
    })?;
    match constant {
        Some(constant) if constant.dtype() != expected.dtype || *constant.shape() != shape => Err(LoadError::internal(
            "a constant was computed with another type or shape than its node has",
            format!("{} `{}`: {constant:?}, expected {} {shape}", op.name(), node.name, expected.dtype),
        )),
        found => Ok(found),
    }
}

/// An upper bound of the additions and multiplications in `node`.
fn work(graph: &Graph, node: &Node, op: &Op) -> u64 {
    let elements = |dims: &[Dim]| {
        let sizes = dims.iter().map(|dim| if let Dim::Fixed(size) = dim { *size as u64 } else { 1 });
        sizes.fold(1u64, u64::saturating_mul)
    };
    let output = elements(&graph.tensor(node.output).dims);
    let each = match op {
        Op::Conv(_) => elements(&graph.tensor(node.inputs[1]).dims[1..]),
        Op::MatMul => elements(graph.tensor(node.inputs[0]).dims.last().map_or(&[], std::slice::from_ref)),
        Op::MaxPool(window) => (window.kernel[0] as u64).saturating_mul(window.kernel[1] as u64),
        Op::AveragePool(pool) => (pool.window.kernel[0] as u64).saturating_mul(pool.window.kernel[1] as u64),
        _ => 1,
    };
    output.saturating_mul(each).saturating_add(elements(&graph.tensor(node.inputs[0]).dims))
}

fn set_constant(graph: &mut Graph, node: &Node, constant: Constant) -> LoadResult<()> {
    let id = u32::try_from(graph.constants.len()).map_err(|_| LoadError::limit("the model has too many constants"))?;
    graph.constants.push(constant);
    graph.values[node.output.index()].source = ValueSource::Constant(ConstantId(id));
    Ok(())
}
