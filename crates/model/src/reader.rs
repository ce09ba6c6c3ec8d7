//! From an ONNX file that has been read to a checked graph for inputs of given shapes. Whatever is wrong with the file is
//! refused here, naming the node, the input or the constant at fault; nothing it holds can cause a panic, deep recursion, or
//! memory out of proportion. It optimises nothing and runs nothing but what a folder of constants computes. `ModelFile` calls it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult, quoted};
use crate::graph::{Dim, Graph, GraphOutput, TensorType, ValueId};
use crate::node_order::node_order;
use crate::onnx::{GraphProto, NodeProto, TensorProto, ValueInfoProto, dimension_proto};
use crate::onnx_file::{OnnxFile, declared_type, describe};
use crate::operators::{self, Attributes, CONDITIONAL, Item, NodeImport};
use crate::passes::constant_folding::Folding;
use crate::reader::scopes::Scopes;
use crate::shape_inference::{Dims, rows_meet, shown};
use crate::tensor_reader::{TensorReader, about, element_type};

mod conditional;
mod scopes;

/// What an input is in the graph that is read.
#[derive(Debug, Clone)]
pub struct ReadInput {
    /// Its dimensions: sizes, and the batch as the first of all inputs or of none.
    pub dims: Dims,
    /// Its elements, where shapes depend on them.
    pub value: Option<Constant>,
}

/// Reads the graph of `file` for `inputs`, one for each of the file's.
pub fn read(file: &OnnxFile, inputs: &[ReadInput], folding: &Folding<'_>) -> LoadResult<Graph> {
    let mut reading = Reading {
        graph: Graph::default(),
        scopes: Scopes::default(),
        opset: file.opset(),
        tensors: TensorReader::settled(),
        folding,
    };
    for (name, constant) in file.constants() {
        let value = reading.graph.add_file_constant(Arc::clone(name), constant.clone())?;
        reading.scopes.set(name, Item::Value(value));
    }
    reading.read_inputs(file, inputs)?;
    reading.read_nodes(&file.graph().node)?;
    let batched = inputs.iter().any(|input| input.dims.first() == Some(&Dim::Batch));
    reading.read_outputs(file.outputs(), batched)?;
    Ok(reading.graph)
}

struct Reading<'a> {
    graph: Graph,
    scopes: Scopes<'a>,
    opset: i64,
    tensors: TensorReader<'a>,
    folding: &'a Folding<'a>,
}

impl<'a> Reading<'a> {
    fn read_inputs(&mut self, file: &'a OnnxFile, inputs: &[ReadInput]) -> LoadResult<()> {
        for (declared, input) in file.inputs().iter().zip(inputs) {
            let tensor = TensorType { dtype: declared.dtype, dims: input.dims.clone() };
            let mut value = self.graph.add_input(&declared.name, tensor)?;
            if let Some(constant) = &input.value {
                value = self.graph.add_constant(Arc::from(&*declared.name), constant.clone())?;
            }
            self.scopes.set(&declared.name, Item::Value(value));
        }
        Ok(())
    }

    fn read_nodes(&mut self, nodes: &'a [NodeProto]) -> LoadResult<()> {
        let order = node_order(nodes, |name| self.scopes.get(name).is_some())?;
        for index in order {
            let node = &nodes[index];
            self.read_node(node, index).map_err(|error| error.context(describe(node, index, self.opset)))?;
        }
        Ok(())
    }

    fn read_node(&mut self, node: &'a NodeProto, index: usize) -> LoadResult<()> {
        let items = match node.op_type.as_str() {
            CONDITIONAL => self.read_conditional(node, index)?,
            _ => self.read_operator(node, index)?,
        };
        if node.output.iter().all(String::is_empty) {
            return Err(LoadError::malformed("it has no output"));
        }
        if let Some(output) = node.output.iter().skip(items.len()).find(|output| !output.is_empty()) {
            return Err(LoadError::unsupported(format!(
                "output {} is not supported, {} of this operator can be had",
                quoted(output),
                items.len()
            )));
        }
        for (output, item) in node.output.iter().zip(items).filter(|(output, _)| !output.is_empty()) {
            let item = self.settled(item, output)?;
            self.scopes.set(output, item);
        }
        Ok(())
    }

    fn read_operator(&mut self, node: &'a NodeProto, index: usize) -> LoadResult<Vec<Item>> {
        let operator = operators::find(&node.domain, &node.op_type)?;
        let given = node.input.len();
        if given < operator.min_inputs || given > operator.max_inputs {
            return Err(LoadError::malformed(format!(
                "it has {given} inputs, expected {}",
                match operator.min_inputs == operator.max_inputs {
                    true => operator.min_inputs.to_string(),
                    false => format!("{} to {}", operator.min_inputs, operator.max_inputs),
                }
            )));
        }
        let inputs = node.input.iter().map(|input| self.scopes.get(input).cloned()).collect();
        let mut import = NodeImport {
            graph: &mut self.graph,
            tensors: &self.tensors,
            folding: self.folding,
            name: node_name(node, index),
            inputs,
            attributes: Attributes::new(node)?,
            opset: self.opset,
            wanted: node.output.iter().map(|output| !output.is_empty()).collect(),
            more_outputs: Default::default(),
        };
        let first = match operators::follow_sizes(&node.op_type, &mut import)? {
            Some(sizes) => sizes,
            None => (operator.import)(&mut import)?,
        };
        import.attributes.finish()?;
        Ok(std::iter::once(first).chain(import.more_outputs).collect())
    }

    /// Sizes that do not depend on the batch are constants like any other.
    fn settled(&mut self, item: Item, name: &str) -> LoadResult<Item> {
        match item {
            Item::Sizes(sizes) if !sizes.has_batch() => {
                self.graph.add_constant(name.into(), sizes.to_constant()?).map(Item::Value)
            }
            item => Ok(item),
        }
    }

    /// Adds the constants of a branch to the names that are in sight.
    fn read_constants(&mut self, tensors: &'a [TensorProto]) -> LoadResult<()> {
        for tensor in tensors {
            let constant = self.tensors.read(tensor).map_err(|error| about(tensor, error))?;
            let value = self.graph.add_file_constant(tensor.name.as_str().into(), constant)?;
            self.scopes.set(&tensor.name, Item::Value(value));
        }
        Ok(())
    }

    fn read_outputs(&mut self, outputs: &'a [ValueInfoProto], batched: bool) -> LoadResult<()> {
        if outputs.is_empty() {
            return Err(LoadError::malformed("the graph has no output"));
        }
        let mut names = HashSet::new();
        for output in outputs {
            let name = quoted(&output.name);
            if !names.insert(&*output.name) {
                return Err(LoadError::malformed(format!("two outputs are named {name}")));
            }
            let value = self.output(output)?;
            let tensor = self.graph.tensor(value);
            check_output(tensor, output, batched).map_err(|error| error.context(format_args!("output {name}")))?;
            self.graph.outputs.push(GraphOutput { name: output.name.as_str().into(), value });
        }
        Ok(())
    }

    /// The value that an output of the graph or of a branch names.
    fn output(&self, output: &ValueInfoProto) -> LoadResult<ValueId> {
        let name = quoted(&output.name);
        match self.scopes.get(&output.name) {
            Some(Item::Value(value)) => Ok(*value),
            Some(Item::Sizes(_)) => {
                Err(rows_meet(&format!("the values of output {name} depend on the number of rows")))
            }
            None => Err(LoadError::malformed(format!("no node writes output {name}"))),
        }
    }

    /// The values that `branch`'s outputs name once its nodes are read.
    fn read_branch(&mut self, branch: &'a GraphProto) -> LoadResult<Vec<ValueId>> {
        self.scopes.enter();
        self.read_constants(&branch.initializer)?;
        self.read_nodes(&branch.node)?;
        let outputs = branch.output.iter().map(|output| self.output(output)).collect();
        self.scopes.leave();
        outputs
    }
}

fn node_name(node: &NodeProto, index: usize) -> Arc<str> {
    match node.name.is_empty() {
        true => format!("{}_{index}", node.op_type).into(),
        false => node.name.as_str().into(),
    }
}

/// Refuses an output that is not what the file declares, or that has no rows in a model that has.
fn check_output(tensor: &TensorType, output: &ValueInfoProto, batched: bool) -> LoadResult<()> {
    if batched && tensor.dims.first() != Some(&Dim::Batch) {
        return Err(rows_meet(&format!("its shape {} does not have it", shown(&tensor.dims))));
    }
    let Some(declared) = declared_type(output)? else { return Ok(()) };
    if declared.elem_type != 0 && element_type(declared.elem_type)? != tensor.dtype {
        let found = element_type(declared.elem_type)?;
        return Err(LoadError::malformed(format!("it is declared as {found}, but its node writes {}", tensor.dtype)));
    }
    let Some(shape) = &declared.shape else { return Ok(()) };
    let fits = |(dim, declared): (&Dim, &crate::onnx::DimensionProto)| match (dim, &declared.value) {
        (Dim::Fixed(size), Some(dimension_proto::Value::DimValue(declared))) => {
            *declared == -1 || usize::try_from(*declared) == Ok(*size)
        }
        _ => true,
    };
    match shape.dim.len() == tensor.dims.len() && tensor.dims.iter().zip(&shape.dim).all(fits) {
        true => Ok(()),
        false => Err(LoadError::malformed(format!(
            "its declared shape is not {}, which its node writes",
            shown(&tensor.dims)
        ))),
    }
}
