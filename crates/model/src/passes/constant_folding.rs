//! Computes at load what depends on constants alone, by asking a device through [`ConstantFolder`]. It executes nothing itself
//! and is bounded in work and memory: what would cost more stays in the graph.

use std::cell::Cell;
use std::fmt;

use insula_core::Result;
use smallvec::SmallVec;

use crate::constant::{Constant, ConstantId};
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, Graph, Node, NodeOp, TensorType, ValueId, ValueSource};
use crate::op::{Op, Window};
use crate::shape_inference;

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

/// Folds while a graph grows, with what work is left for one model.
#[derive(Debug)]
pub struct Folding<'a> {
    folder: &'a dyn ConstantFolder,
    work_left: Cell<u64>,
}

impl<'a> Folding<'a> {
    /// By `folder`, with a whole model's work left.
    pub fn new(folder: &'a dyn ConstantFolder) -> Folding<'a> {
        Folding { folder, work_left: Cell::new(MAX_WORK) }
    }

    /// The result of `op` on `inputs`, which is for node `name`; `None` when they are not all constants, or it costs too much.
    pub fn fold(&self, graph: &mut Graph, name: &str, op: &Op, inputs: &[ValueId]) -> LoadResult<Option<Constant>> {
        if inputs.iter().any(|&input| graph.constant(input).is_none()) {
            return Ok(None);
        }
        let expected = {
            let types: SmallVec<[&TensorType; 2]> = inputs.iter().map(|&input| graph.tensor(input)).collect();
            shape_inference::infer(op, &types)?
        };
        let shape = expected.shape(1)?;
        let Some(bytes) = shape.bytes(expected.dtype)? else { return Ok(None) };
        let work = work(graph, &expected, op, inputs);
        let Some(left) = self.work_left.get().checked_sub(work) else { return Ok(None) };
        if expected.dims.contains(&Dim::Batch) || !graph.charge_derived(bytes) {
            return Ok(None);
        }
        self.work_left.set(left);
        let inputs: Vec<&Constant> = inputs.iter().filter_map(|&input| graph.constant(input)).collect();
        let constant = self.folder.fold(op, &inputs).map_err(|error| {
            LoadError::from(error).context(format_args!("node `{name}`, which depends on constants alone"))
        })?;
        match constant {
            Some(constant) if constant.dtype() != expected.dtype || *constant.shape() != shape => {
                Err(LoadError::internal(
                    "a constant was computed with another type or shape than its node has",
                    format!("{} `{name}`: {constant:?}, expected {} {shape}", op.name(), expected.dtype),
                ))
            }
            found => Ok(found),
        }
    }
}

/// Turns every node whose inputs are constants into a constant.
pub fn run(graph: &mut Graph, folding: &Folding<'_>) -> LoadResult<()> {
    let nodes = std::mem::take(&mut graph.nodes);
    for node in nodes {
        match folded(graph, &node, folding)? {
            Some(constant) => set_constant(graph, &node, constant)?,
            None => graph.nodes.push(node),
        }
    }
    Ok(())
}

fn folded(graph: &mut Graph, node: &Node, folding: &Folding<'_>) -> LoadResult<Option<Constant>> {
    if !node.epilogue.is_none() {
        return Ok(None);
    }
    match &node.op {
        NodeOp::View => {
            let shape = graph.tensor(node.output).shape(1)?;
            Ok(graph.constant(node.inputs[0]).map(|constant| constant.reshaped(shape)).transpose()?)
        }
        NodeOp::Compute(op) => folding.fold(graph, &node.name, op, &node.inputs),
    }
}

/// An upper bound of the additions and multiplications of `op`.
fn work(graph: &Graph, output: &TensorType, op: &Op, inputs: &[ValueId]) -> u64 {
    let elements = |dims: &[Dim]| {
        let sizes = dims.iter().map(|dim| if let Dim::Fixed(size) = dim { *size as u64 } else { 1 });
        sizes.fold(1u64, u64::saturating_mul)
    };
    let output = elements(&output.dims);
    let each = match op {
        Op::Conv(_) => elements(&graph.tensor(inputs[1]).dims[1..]),
        Op::MatMul => elements(graph.tensor(inputs[0]).dims.last().map_or(&[], std::slice::from_ref)),
        Op::ConvTranspose(_) | Op::DeformConv(_) => elements(&graph.tensor(inputs[1]).dims),
        Op::Recurrent(_) => {
            elements(&graph.tensor(inputs[1]).dims).saturating_add(elements(&graph.tensor(inputs[2]).dims))
        }
        Op::LpPool(pool) => taps(&pool.window),
        Op::MaxPositions(op) => taps(&op.window),
        Op::MaxPool(window) => taps(window),
        Op::AveragePool(pool) => taps(&pool.window),
        _ => 1,
    };
    output.saturating_mul(each).saturating_add(elements(&graph.tensor(inputs[0]).dims))
}

fn set_constant(graph: &mut Graph, node: &Node, constant: Constant) -> LoadResult<()> {
    let id = u32::try_from(graph.constants.len()).map_err(|_| LoadError::limit("the model has too many constants"))?;
    graph.constants.push(constant);
    graph.values[node.output.index()].source = ValueSource::Constant(ConstantId(id));
    Ok(())
}

fn taps(window: &Window) -> u64 {
    window.kernel.iter().fold(1, |taps, size| taps.saturating_mul(*size as u64))
}
