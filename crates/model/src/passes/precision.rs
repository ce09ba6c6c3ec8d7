//! The numbers a model computes in. `fp16`: weights and activations are stored in half (devices accumulate in f32); `fp32`:
//! halves in the file are widened. Inputs and outputs keep their declared types: casts stand at the borders. Biases are FP32
//! in any case.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use insula_core::{DType, Error};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult, quoted};
use crate::graph::{Graph, Node, NodeOp, ValueId, ValueSource};
use crate::op::Op;

/// The numbers a model computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// As the file has them.
    #[default]
    File,
    /// Stored in FP32.
    Fp32,
    /// Stored in FP16.
    Fp16,
}

impl FromStr for Precision {
    type Err = Error;

    /// Accepts `fp32` and `fp16`.
    fn from_str(text: &str) -> Result<Precision, Error> {
        match text {
            "fp32" => Ok(Precision::Fp32),
            "fp16" => Ok(Precision::Fp16),
            _ => Err(Error::invalid(format!("precision is {}, expected `fp16` or `fp32`", quoted(text)))),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::File => "file",
            Precision::Fp32 => "fp32",
            Precision::Fp16 => "fp16",
        })
    }
}

/// Converts the graph to `precision`. Fails when a constant is too large for FP16.
pub fn run(graph: &mut Graph, precision: Precision) -> LoadResult<()> {
    let (from, to) = match precision {
        Precision::File => return Ok(()),
        Precision::Fp32 => (DType::Fp16, DType::Fp32),
        Precision::Fp16 => (DType::Fp32, DType::Fp16),
    };
    let declared: Vec<DType> = graph.outputs.iter().map(|output| graph.tensor(output.value).dtype).collect();
    let nodes = std::mem::take(&mut graph.nodes);
    let mut conversion = Conversion { graph, from, to, converted: HashMap::new() };
    for node in nodes {
        conversion.convert_node(node)?;
    }
    for (index, dtype) in declared.into_iter().enumerate() {
        let value = conversion.graph.outputs[index].value;
        // a cast that became nothing stands for its input
        let value = conversion.converted.get(&value).copied().filter(|_| conversion.is_gone(value)).unwrap_or(value);
        conversion.graph.outputs[index].value = conversion.cast_to(value, dtype)?;
    }
    Ok(())
}

struct Conversion<'a> {
    graph: &'a mut Graph,
    from: DType,
    to: DType,
    /// Values of type `from`, or casts that became nothing, to what stands for them.
    converted: HashMap<ValueId, ValueId>,
}

impl Conversion<'_> {
    fn convert_node(&mut self, mut node: Node) -> LoadResult<()> {
        if node.op == NodeOp::View && self.is_input(node.inputs[0]) {
            // an output that is the input under another shape stays as it came; others who read this view convert it
            self.graph.nodes.push(node);
            return Ok(());
        }
        for input in node.inputs.iter_mut().chain(&mut node.epilogue.residual) {
            *input = self.convert(*input)?;
        }
        let output = &mut self.graph.values[node.output.index()].tensor.dtype;
        if *output == self.from {
            *output = self.to;
        }
        if let NodeOp::Compute(Op::Cast { to }) = &mut node.op {
            if *to == self.from {
                *to = self.to;
            }
            if self.graph.tensor(node.inputs[0]).dtype == *to {
                self.converted.insert(node.output, node.inputs[0]);
                return Ok(());
            }
        }
        self.graph.nodes.push(node);
        Ok(())
    }

    /// What stands for `value` where it is computed with.
    fn convert(&mut self, value: ValueId) -> LoadResult<ValueId> {
        if let Some(&converted) = self.converted.get(&value) {
            return Ok(converted);
        }
        if self.graph.tensor(value).dtype != self.from {
            return Ok(value);
        }
        let converted = match self.graph.constant(value) {
            Some(constant) => {
                let constant = self.convert_constant(constant, value)?;
                self.graph.add_constant(Arc::clone(&self.graph.values[value.index()].name), constant)?
            }
            None => self.cast_to(value, self.to)?,
        };
        self.converted.insert(value, converted);
        Ok(converted)
    }

    fn convert_constant(&self, constant: &Constant, value: ValueId) -> LoadResult<Constant> {
        let elements = constant.to_f32()?;
        let largest = half::f16::MAX.to_f32();
        if self.to == DType::Fp16
            && let Some(element) = elements.iter().find(|element| element.is_finite() && element.abs() > largest)
        {
            let name = quoted(&self.graph.values[value.index()].name);
            return Err(LoadError::unsupported(format!(
                "constant {name} holds {element}, FP16 ends at {largest}: use precision fp32 for this model"
            )));
        }
        Ok(Constant::of_f32(self.to, constant.shape().clone(), &elements)?)
    }

    fn cast_to(&mut self, value: ValueId, to: DType) -> LoadResult<ValueId> {
        if self.graph.tensor(value).dtype == to {
            return Ok(value);
        }
        let name = Arc::clone(&self.graph.values[value.index()].name);
        self.graph.add_compute(name, Op::Cast { to }, &[value])
    }

    fn is_input(&self, value: ValueId) -> bool {
        matches!(self.graph.values[value.index()].source, ValueSource::Input(_))
    }

    /// Whether `value` was written by a cast that became nothing.
    fn is_gone(&self, value: ValueId) -> bool {
        self.converted.contains_key(&value) && self.graph.tensor(value).dtype == self.to
    }
}
