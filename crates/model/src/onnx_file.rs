//! An ONNX file that has been read once: its nodes as they stand in the file, its constants as tensors, its inputs as they are
//! declared. Graphs for any shapes are read from it afterwards, without the file. It checks what does not depend on shapes and
//! runs nothing. `ModelFile` opens it; the reader walks it.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use insula_core::shape::MAX_RANK;
use insula_core::{DType, Dimension};
use prost::Message;
use sha2::{Digest, Sha256};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult, quoted};
use crate::external_data::ExternalData;
use crate::node_order::node_label;
use crate::onnx::{GraphProto, ModelProto, NodeProto, TensorTypeProto, ValueInfoProto, dimension_proto};
use crate::operators::{self, NEWEST_OPSET, OLDEST_OPSET, is_onnx_domain};
use crate::tensor_reader::{TensorReader, about, element_type};
use crate::wire_scan;

/// The most nodes a file may have, those in branches included.
pub const MAX_NODES: usize = 100_000;

/// A file that has been read.
pub struct OnnxFile {
    graph: GraphProto,
    opset: i64,
    constants: Vec<(Arc<str>, Constant)>,
    inputs: Vec<DeclaredInput>,
}

/// An input as the file declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredInput {
    /// The name callers use.
    pub name: Box<str>,
    /// The element type.
    pub dtype: DType,
    /// The dimensions; the name of a symbolic one is empty where the file gives none.
    pub dims: Vec<Dimension>,
}

impl OnnxFile {
    /// Reads `bytes`, external data from `external`, constants of up to `constant_limit` bytes in all. Fails for what cannot be
    /// right whatever the shapes are, operators that are not supported included.
    pub fn open(bytes: Bytes, external: &dyn ExternalData, constant_limit: u64) -> LoadResult<OnnxFile> {
        wire_scan::check(&bytes, wire_scan::MAX_STRUCTURE_BYTES)?;
        let model = ModelProto::decode(bytes).map_err(|error| {
            LoadError::malformed("the file is not an ONNX model: its fields do not have the types they should")
                .with_detail(error.to_string())
        })?;
        let opset = opset(&model)?;
        let mut graph = model.graph.ok_or_else(|| LoadError::malformed("the file has no graph"))?;
        check_nodes(&graph, opset)?;
        let tensors = TensorReader::new(external, constant_limit);
        let constants = take_constants(&mut graph, &tensors)?;
        settle_tensors(&mut graph, &tensors)?;
        let inputs = declared_inputs(&graph, &constants)?;
        Ok(OnnxFile { graph, opset, constants, inputs })
    }

    /// The version of ONNX's operator set that the model uses.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// The inputs that callers give, in the file's order.
    pub fn inputs(&self) -> &[DeclaredInput] {
        &self.inputs
    }

    /// The outputs as they are declared.
    pub fn outputs(&self) -> &[ValueInfoProto] {
        &self.graph.output
    }

    /// The constants with their names, in the file's order.
    pub fn constants(&self) -> &[(Arc<str>, Constant)] {
        &self.constants
    }

    /// SHA-256 of the nodes and the constants.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.opset.to_le_bytes());
        hash.update(self.graph.encode_to_vec());
        for (name, constant) in &self.constants {
            hash.update(format!("{name} {}\n", constant.shape()));
            hash.update(constant.content_hash());
        }
        hash.finalize().into()
    }

    /// The nodes, without its constants.
    pub fn graph(&self) -> &GraphProto {
        &self.graph
    }
}

impl std::fmt::Debug for OnnxFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxFile").field("nodes", &self.graph.node.len()).finish_non_exhaustive()
    }
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

/// Counts the nodes of the graph and of all branches in it, and looks for operators that are not supported.
fn check_nodes(graph: &GraphProto, opset: i64) -> LoadResult<()> {
    let (mut open, mut count) = (vec![graph], 0usize);
    while let Some(graph) = open.pop() {
        if !graph.sparse_initializer.is_empty() {
            return Err(LoadError::unsupported("sparse constants are not supported; store them dense"));
        }
        count = count.saturating_add(graph.node.len());
        if count > MAX_NODES {
            return Err(LoadError::limit(format!("the graph has {count} nodes, at most {MAX_NODES} are supported")));
        }
        for (index, node) in graph.node.iter().enumerate() {
            operators::check_known(&node.domain, &node.op_type)
                .map_err(|error| error.context(describe(node, index, opset)))?;
            open.extend(node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()));
        }
    }
    Ok(())
}

/// How messages name a node.
pub(crate) fn describe(node: &NodeProto, index: usize, opset: i64) -> String {
    format!("{} (operator {}, opset {opset})", node_label(node, index), quoted(&node.op_type))
}

/// Reads the graph's constants and takes them out of it.
fn take_constants(graph: &mut GraphProto, tensors: &TensorReader<'_>) -> LoadResult<Vec<(Arc<str>, Constant)>> {
    let (mut constants, mut names) = (Vec::new(), HashSet::new());
    for tensor in std::mem::take(&mut graph.initializer) {
        if tensor.name.is_empty() {
            return Err(LoadError::malformed("a constant has no name"));
        }
        let constant = tensors.read(&tensor).map_err(|error| about(&tensor, error))?;
        let name: Arc<str> = tensor.name.into();
        if !names.insert(Arc::clone(&name)) {
            return Err(LoadError::malformed(format!("two constants are named {}", quoted(&name))));
        }
        constants.push((name, constant));
    }
    Ok(constants)
}

/// Brings what tensors in attributes and branches keep elsewhere into the graph, so that neither the file's bytes nor its
/// external data are needed any more.
fn settle_tensors(graph: &mut GraphProto, tensors: &TensorReader<'_>) -> LoadResult<()> {
    let mut open: Vec<&mut GraphProto> = vec![graph];
    while let Some(graph) = open.pop() {
        for tensor in &mut graph.initializer {
            tensors.settle(tensor).map_err(|error| about(tensor, error))?;
        }
        for (index, node) in graph.node.iter_mut().enumerate() {
            let label = node_label(node, index);
            for attribute in &mut node.attribute {
                attribute.s = Bytes::copy_from_slice(&attribute.s);
                for text in &mut attribute.strings {
                    *text = Bytes::copy_from_slice(text);
                }
                if let Some(tensor) = &mut attribute.t {
                    tensors.settle(tensor).map_err(|error| error.context(&label))?;
                }
                open.extend(attribute.g.as_mut());
            }
        }
    }
    Ok(())
}

fn declared_inputs(graph: &GraphProto, constants: &[(Arc<str>, Constant)]) -> LoadResult<Vec<DeclaredInput>> {
    let (mut inputs, mut names) = (Vec::new(), HashSet::new());
    let constants: HashSet<&str> = constants.iter().map(|(name, _)| &**name).collect();
    // files of the first versions list the constants among the inputs
    for input in graph.input.iter().filter(|input| !constants.contains(&*input.name)) {
        let named = |error: LoadError| error.context(format_args!("input {}", quoted(&input.name)));
        if !names.insert(&*input.name) {
            return Err(LoadError::malformed(format!("two inputs are named {}", quoted(&input.name))));
        }
        let declared = declared_type(input).map_err(named)?;
        let (dtype, dims) = input_type(declared).map_err(named)?;
        inputs.push(DeclaredInput { name: input.name.as_str().into(), dtype, dims });
    }
    Ok(inputs)
}

/// The tensor type of an input or output, if one is declared. Fails for sequences, maps and optional values.
pub(crate) fn declared_type(value: &ValueInfoProto) -> LoadResult<Option<&TensorTypeProto>> {
    match &value.r#type {
        None => Ok(None),
        Some(declared) => match &declared.tensor_type {
            Some(tensor) => Ok(Some(tensor)),
            None => Err(LoadError::unsupported("its type is not a tensor; dense tensors are supported")),
        },
    }
}

fn input_type(declared: Option<&TensorTypeProto>) -> LoadResult<(DType, Vec<Dimension>)> {
    let declared = declared.ok_or_else(|| LoadError::malformed("its type is missing"))?;
    let dtype = element_type(declared.elem_type)?;
    let shape = declared.shape.as_ref().ok_or_else(|| {
        LoadError::unsupported("its shape is missing; a shape is needed, whose dimensions may be symbolic")
    })?;
    if shape.dim.len() > MAX_RANK {
        return Err(LoadError::unsupported(format!(
            "it has {} dimensions, at most {MAX_RANK} are supported",
            shape.dim.len()
        )));
    }
    let mut dims = Vec::with_capacity(shape.dim.len());
    for (index, dim) in shape.dim.iter().enumerate() {
        dims.push(match &dim.value {
            Some(dimension_proto::Value::DimValue(size)) if *size >= 0 => Dimension::Fixed(
                usize::try_from(*size).map_err(|_| LoadError::limit(format!("dimension {index} is {size}")))?,
            ),
            // some exporters write -1 for what is not known
            Some(dimension_proto::Value::DimValue(-1)) | None => Dimension::Symbolic("".into()),
            Some(dimension_proto::Value::DimValue(size)) => {
                return Err(LoadError::malformed(format!("dimension {index} is {size}, expected a size or a symbol")));
            }
            Some(dimension_proto::Value::DimParam(name)) => Dimension::Symbolic(name.as_str().into()),
        });
    }
    check_countable(&dims)?;
    Ok((dtype, dims))
}

/// The fixed dimensions alone must be countable.
fn check_countable(dims: &[Dimension]) -> LoadResult<()> {
    let fixed = |dim: &Dimension| if let Dimension::Fixed(size) = dim { *size } else { 1 };
    let fixed: Vec<usize> = dims.iter().map(fixed).collect();
    insula_core::Shape::new(&fixed)?;
    Ok(())
}
