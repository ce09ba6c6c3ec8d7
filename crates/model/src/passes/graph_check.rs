//! The check of a finished graph: every value written before it is read, every type what its operation makes, every epilogue one
//! that devices know. It changes nothing. What fails here is insula's fault.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Graph, Node, NodeOp, TensorType, ValueSource};
use crate::op::Op;
use crate::shape_inference;

/// Checks `graph`.
pub fn run(graph: &Graph) -> LoadResult<()> {
    let mut written: Vec<bool> = graph.values.iter().map(|value| value.source != ValueSource::Node).collect();
    for node in &graph.nodes {
        let about =
            |what: &str| LoadError::internal("the optimised graph does not hold together", format!("{what}: {node:?}"));
        if node.reads().any(|value| !written[value.index()]) {
            return Err(about("a value is read before it is written"));
        }
        if std::mem::replace(&mut written[node.output.index()], true) {
            return Err(about("a value is written twice"));
        }
        if !types_agree(graph, node)? {
            return Err(about("the output's type is not what the operation makes"));
        }
        if !epilogue_fits(graph, node) {
            return Err(about("the epilogue does not fit"));
        }
    }
    match graph.outputs.iter().all(|output| written[output.value.index()]) {
        true => Ok(()),
        false => Err(LoadError::internal("the optimised graph does not hold together", "an output is not written")),
    }
}

fn types_agree(graph: &Graph, node: &Node) -> LoadResult<bool> {
    let inputs: Vec<&TensorType> = node.inputs.iter().map(|&input| graph.tensor(input)).collect();
    let output = graph.tensor(node.output);
    match &node.op {
        NodeOp::Compute(op) => Ok(shape_inference::infer(op, &inputs)? == *output),
        NodeOp::View => {
            Ok(inputs[0].dtype == output.dtype && inputs[0].shape(1)?.elements() == output.shape(1)?.elements())
        }
    }
}

fn epilogue_fits(graph: &Graph, node: &Node) -> bool {
    let output = graph.tensor(node.output);
    let (fusable, takes_residual) = match &node.op {
        NodeOp::Compute(Op::Conv(_) | Op::MatMul) => (true, true),
        NodeOp::Compute(Op::Binary(_) | Op::ConvTranspose(_)) => (true, false),
        _ => (false, false),
    };
    let bias_fits = node.epilogue.bias.is_none_or(|bias| {
        let bias = &graph.constants[bias.index()];
        let last = output.dims.last().copied();
        bias.dtype() == DType::Fp32
            && matches!((bias.shape().dims(), last), ([size], Some(crate::graph::Dim::Fixed(last))) if *size == last)
    });
    let residual_fits =
        node.epilogue.residual.is_none_or(|residual| takes_residual && graph.tensor(residual) == output);
    (fusable || node.epilogue.is_none()) && bias_fits && residual_fits
}
