//! From the bytes of an ONNX file to a checked graph. Whatever is wrong with the file is refused here, naming the node, the
//! input or the constant at fault; nothing it holds can cause a panic, deep recursion, or memory out of proportion. It
//! optimises nothing and runs nothing. `Model::load` calls it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use insula_core::shape::MAX_RANK;
use prost::Message;

use crate::error::{LoadError, LoadResult, quoted};
use crate::external_data::ExternalData;
use crate::graph::{Dim, Graph, GraphOutput, TensorType};
use crate::node_order::{node_label, node_order};
use crate::onnx::{GraphProto, ModelProto, NodeProto, TensorTypeProto, ValueInfoProto, dimension_proto};
use crate::operators::{self, Attributes, Item, NEWEST_OPSET, NodeImport, OLDEST_OPSET, is_onnx_domain};
use crate::shape_inference::{Dims, check_batch, rows_meet, shown};
use crate::tensor_reader::{TensorReader, about, element_type};
use crate::wire_scan;

/// The most nodes a graph may have.
pub const MAX_NODES: usize = 100_000;

/// A graph as it stands in the file.
#[derive(Debug)]
pub struct ReadGraph {
    /// The graph.
    pub graph: Graph,
    /// The name of dimension 0 of every input when rows are counted by it; `None`: all dimensions are fixed.
    pub batch: Option<Box<str>>,
}

/// Reads the graph in `bytes`, external data from `external`, constants of up to `constant_limit` bytes in all.
pub fn read(bytes: Bytes, external: &dyn ExternalData, constant_limit: u64) -> LoadResult<ReadGraph> {
    wire_scan::check(&bytes, wire_scan::MAX_STRUCTURE_BYTES)?;
    let model = ModelProto::decode(bytes).map_err(|error| {
        LoadError::malformed("the file is not an ONNX model: its fields do not have the types they should")
            .with_detail(error.to_string())
    })?;
    let opset = opset(&model)?;
    let file = model.graph.ok_or_else(|| LoadError::malformed("the file has no graph"))?;
    if file.node.len() > MAX_NODES {
        return Err(LoadError::limit(format!(
            "the graph has {} nodes, at most {MAX_NODES} are supported",
            file.node.len()
        )));
    }
    if !file.sparse_initializer.is_empty() {
        return Err(LoadError::unsupported("sparse constants are not supported; store them dense"));
    }
    let tensors = TensorReader::new(external, constant_limit);
    let mut reading = Reading { graph: Graph::default(), items: HashMap::new() };
    reading.read_constants(&file, &tensors)?;
    let batch = reading.read_inputs(&file)?;
    reading.read_nodes(&file.node, opset, &tensors)?;
    reading.read_outputs(&file.output, batch.is_some())?;
    Ok(ReadGraph { graph: reading.graph, batch })
}

fn opset(model: &ModelProto) -> LoadResult<i64> {
    let found =
        model.opset_import.iter().filter(|opset| is_onnx_domain(&opset.domain)).map(|opset| opset.version).max();
    match found {
        Some(version) if (OLDEST_OPSET..=NEWEST_OPSET).contains(&version) => Ok(version),
        Some(version) => Err(LoadError::unsupported(format!(
            "the model uses version {version} of ONNX's operator set; {OLDEST_OPSET} to {NEWEST_OPSET} are supported"
        ))),
        None if model.graph.is_none() => Err(LoadError::malformed("the file has no graph")),
        None => Err(LoadError::malformed("the file does not say which version of ONNX's operator set it uses")),
    }
}

struct Reading<'a> {
    graph: Graph,
    items: HashMap<&'a str, Item>,
}

impl<'a> Reading<'a> {
    fn read_constants(&mut self, file: &'a GraphProto, tensors: &TensorReader<'_>) -> LoadResult<()> {
        for tensor in &file.initializer {
            if tensor.name.is_empty() {
                return Err(LoadError::malformed("a constant has no name"));
            }
            let constant = tensors.read(tensor).map_err(|error| about(tensor, error))?;
            let value = self.graph.add_file_constant(tensor.name.as_str().into(), constant)?;
            if self.items.insert(&tensor.name, Item::Value(value)).is_some() {
                return Err(LoadError::malformed(format!("two constants are named {}", quoted(&tensor.name))));
            }
        }
        Ok(())
    }

    /// The name of the batch, if dimension 0 of all inputs is symbolic.
    fn read_inputs(&mut self, file: &'a GraphProto) -> LoadResult<Option<Box<str>>> {
        // files of the first versions list the constants among the inputs
        let constants: HashSet<&str> = file.initializer.iter().map(|tensor| &*tensor.name).collect();
        let mut batch: Option<(&str, &str)> = None;
        let mut fixed: Option<&str> = None;
        for input in file.input.iter().filter(|input| !constants.contains(&*input.name)) {
            let named = |error: LoadError| error.context(format_args!("input {}", quoted(&input.name)));
            let declared = declared_type(input).map_err(named)?;
            let (tensor, symbol) = input_type(declared).map_err(named)?;
            let value = self.graph.add_input(&input.name, tensor)?;
            if self.items.insert(&input.name, Item::Value(value)).is_some() {
                return Err(LoadError::malformed(format!("two inputs are named {}", quoted(&input.name))));
            }
            match symbol {
                Some(symbol) => {
                    let (other, first) = *batch.get_or_insert((&input.name, symbol));
                    if first != symbol {
                        return Err(rows_meet(&format!(
                            "inputs {} and {} count rows by different symbols",
                            quoted(other),
                            quoted(&input.name)
                        )));
                    }
                }
                None => fixed = fixed.or(Some(&input.name)),
            }
        }
        match (batch, fixed) {
            (Some((symbolic, _)), Some(fixed)) => Err(rows_meet(&format!(
                "the first dimension of input {} is symbolic and that of input {} is not",
                quoted(symbolic),
                quoted(fixed)
            ))),
            (Some((_, symbol)), None) => Ok(Some(if symbol.is_empty() { "batch".into() } else { symbol.into() })),
            (None, _) => Ok(None),
        }
    }

    fn read_nodes(&mut self, nodes: &'a [NodeProto], opset: i64, tensors: &TensorReader<'_>) -> LoadResult<()> {
        let given: HashSet<&str> = self.items.keys().copied().collect();
        for index in node_order(nodes, &given)? {
            let node = &nodes[index];
            self.read_node(node, index, opset, tensors).map_err(|error| {
                let operator = quoted(&node.op_type);
                error.context(format_args!("{} (operator {operator}, opset {opset})", node_label(node, index)))
            })?;
        }
        Ok(())
    }

    fn read_node(
        &mut self,
        node: &'a NodeProto,
        index: usize,
        opset: i64,
        tensors: &TensorReader<'_>,
    ) -> LoadResult<()> {
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
        let Some(output) = node.output.first().filter(|output| !output.is_empty()) else {
            return Err(LoadError::malformed("it has no output"));
        };
        if let Some(second) = node.output.iter().skip(1).find(|output| !output.is_empty()) {
            return Err(LoadError::unsupported(format!(
                "output {} is not supported, only the first output is",
                quoted(second)
            )));
        }
        let name: Arc<str> =
            if node.name.is_empty() { format!("{}_{index}", node.op_type).into() } else { node.name.as_str().into() };
        let inputs = node.input.iter().map(|input| self.items.get(input.as_str()).cloned()).collect();
        let attributes = Attributes::new(node)?;
        let mut import = NodeImport { graph: &mut self.graph, tensors, name, inputs, attributes, opset };
        let item = (operator.import)(&mut import)?;
        import.attributes.finish()?;
        self.items.insert(output, item);
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
            let value = match self.items.get(&*output.name) {
                Some(Item::Value(value)) => *value,
                Some(Item::Sizes(_)) => {
                    return Err(LoadError::unsupported(format!("output {name} is a shape; tensors are supported")));
                }
                None => return Err(LoadError::malformed(format!("no node writes output {name}"))),
            };
            let tensor = self.graph.tensor(value);
            check_output(tensor, declared_type(output).ok().flatten(), batched)
                .map_err(|error| error.context(format_args!("output {name}")))?;
            self.graph.outputs.push(GraphOutput { name: output.name.as_str().into(), value });
        }
        Ok(())
    }
}

/// The tensor type of an input or output, if one is declared. Fails for sequences, maps and optional values.
fn declared_type(value: &ValueInfoProto) -> LoadResult<Option<&TensorTypeProto>> {
    match &value.r#type {
        None => Ok(None),
        Some(declared) => match &declared.tensor_type {
            Some(tensor) => Ok(Some(tensor)),
            None => Err(LoadError::unsupported("its type is not a tensor; dense tensors are supported")),
        },
    }
}

/// An input's type, and the symbol of dimension 0 if that is symbolic (empty when it has no name).
fn input_type(declared: Option<&TensorTypeProto>) -> LoadResult<(TensorType, Option<&str>)> {
    let declared = declared.ok_or_else(|| LoadError::malformed("its type is missing"))?;
    let dtype = element_type(declared.elem_type)?;
    let shape = declared.shape.as_ref().ok_or_else(|| {
        LoadError::unsupported("its shape is missing; a shape is needed, whose first dimension may be symbolic")
    })?;
    if shape.dim.len() > MAX_RANK {
        return Err(LoadError::unsupported(format!(
            "it has {} dimensions, at most {MAX_RANK} are supported",
            shape.dim.len()
        )));
    }
    let mut symbol = None;
    let mut dims = Dims::new();
    for (index, dim) in shape.dim.iter().enumerate() {
        let found = match &dim.value {
            Some(dimension_proto::Value::DimValue(size)) if *size > 0 => {
                let size =
                    usize::try_from(*size).map_err(|_| LoadError::limit(format!("dimension {index} is {size}")))?;
                dims.push(Dim::Fixed(size));
                continue;
            }
            // some exporters write -1 for what is not known
            Some(dimension_proto::Value::DimValue(-1)) | None => "",
            Some(dimension_proto::Value::DimValue(size)) => {
                return Err(LoadError::malformed(format!(
                    "dimension {index} is {size}, expected a positive size or a symbol"
                )));
            }
            Some(dimension_proto::Value::DimParam(name)) => name,
        };
        if index > 0 {
            return Err(LoadError::unsupported(format!(
                "dimension {index} is symbolic ({}); only the first dimension may be, export the model with a fixed size",
                quoted(found)
            )));
        }
        symbol = Some(found);
        dims.push(Dim::Batch);
    }
    check_batch(&dims)?;
    Ok((TensorType { dtype, dims }, symbol))
}

/// Refuses an output that is not what the file declares, or that has no rows in a model that has.
fn check_output(tensor: &TensorType, declared: Option<&TensorTypeProto>, batched: bool) -> LoadResult<()> {
    if batched && tensor.dims.first() != Some(&Dim::Batch) {
        return Err(rows_meet(&format!("its shape {} does not have it", shown(&tensor.dims))));
    }
    let Some(declared) = declared else { return Ok(()) };
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
