//! A model version as its file describes it: which inputs vary, whether rows can be batched, and the models for each shape class
//! that it stands for. What can be refused is refused when it is loaded: operators, and a graph that fits no sizes that were
//! tried. It executes nothing and is the entry to this crate for the runtime.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use insula_core::{DType, Dimension, Error, ModelSignature, Result, Shape, TensorSpec};
use parking_lot::RwLock;

use crate::constant::Constant;
use crate::error::{LoadError, LoadErrorKind, LoadResult, quoted};
use crate::external_data::ExternalData;
use crate::graph::{Dim, Graph};
use crate::model::{LARGEST_MAX_BATCH, LoadOptions, Model};
use crate::onnx::dimension_proto;
use crate::onnx_file::{DeclaredInput, OnnxFile, declared_type};
use crate::passes;
use crate::passes::constant_folding::{ConstantFolder, Folding};
use crate::passes::precision::Precision;
use crate::reader::{self, ReadInput};
use crate::shape_class::{ClassInput, ShapeClass};
use crate::tensor_reader::element_type;

/// The most elements of an input whose values decide shapes.
pub const MAX_VALUES: usize = 256;

/// Sizes that are tried for symbolic dimensions when a model is loaded, all of them at once: common ones first.
const TRIED_SIZES: [usize; 12] = [64, 32, 48, 128, 512, 224, 16, 8, 256, 4, 1, 576];

/// A model version that has been read.
pub struct ModelFile {
    file: OnnxFile,
    signature: Arc<ModelSignature>,
    /// The name of dimension 0 of every input when rows are counted by it.
    batched: bool,
    /// The inputs whose values decide shapes, as far as is known: a graph's end is seen only once it has the values it needs first.
    values: RwLock<Vec<usize>>,
    precision: Precision,
    arena_limit: u64,
    /// The one model there is when nothing but the rows varies.
    fixed: Option<Arc<Model>>,
}

impl ModelFile {
    /// Loads the ONNX file in `onnx`, with external data from `external`. The error names the node, input or constant at fault.
    pub fn load(onnx: Bytes, external: &dyn ExternalData, options: &LoadOptions<'_>) -> LoadResult<ModelFile> {
        if !(1..=LARGEST_MAX_BATCH).contains(&options.max_batch) {
            return Err(LoadError::new(
                LoadErrorKind::Settings,
                format!("max_batch is {}, expected 1 to {LARGEST_MAX_BATCH}", options.max_batch),
            ));
        }
        let file = OnnxFile::open(onnx, external, options.constant_limit)?;
        // one allowance of folding for all that is tried, however often
        let found = find_any_mode(&file, options, &Folding::new(options.folder))?;
        let Mode { batched, values, tried } = found;
        let max_batch = if batched { options.max_batch } else { 1 };
        let signature = Arc::new(signature(&file, batched, max_batch, tried.as_ref())?);
        let varies = !values.is_empty() || varying(file.inputs(), batched);
        let (precision, arena_limit) = (options.precision, options.arena_limit);
        let values = RwLock::new(values);
        let mut loaded = ModelFile { file, signature, batched, values, precision, arena_limit, fixed: None };
        if !varies && let Some(graph) = tried {
            loaded.fixed = Some(Arc::new(loaded.model(graph, false)?));
        }
        Ok(loaded)
    }

    /// Inputs, outputs and how requests may be batched.
    pub fn signature(&self) -> Arc<ModelSignature> {
        Arc::clone(&self.signature)
    }

    /// SHA-256 of the nodes and the constants: equal for copies of one model.
    pub fn content_hash(&self) -> [u8; 32] {
        self.file.content_hash()
    }

    /// The one model there is, when nothing but the rows of its inputs varies.
    pub fn fixed(&self) -> Option<&Arc<Model>> {
        self.fixed.as_ref()
    }

    /// Whether the values of input number `input` decide shapes.
    pub fn is_value(&self, input: usize) -> bool {
        self.values.read().contains(&input)
    }

    /// The class of a request with these inputs, in the model's order, which have been checked against the signature.
    /// Fails when an input whose values decide shapes has too many of them.
    pub fn class(&self, inputs: &[ClassInput<'_>]) -> Result<ShapeClass> {
        let skipped = usize::from(self.batched);
        let values = self.values.read();
        let mut class = ShapeClass::default();
        for (index, input) in inputs.iter().enumerate() {
            class.dims.push(input.shape.dims().iter().skip(skipped).copied().collect());
            if values.contains(&index) {
                if input.shape.elements() > MAX_VALUES {
                    return Err(Error::invalid(format!(
                        "input `{}` has {} elements; its values decide shapes, so it may have at most {MAX_VALUES}",
                        self.signature.inputs[index].name,
                        input.shape.elements()
                    )));
                }
                class.values.push((index, input.bytes.into()));
            }
        }
        Ok(class)
    }

    /// The model for requests of `class`, its constants folded by `folder`. The error says what does not fit these sizes. One of
    /// kind [`LoadErrorKind::NeedsValues`] says that more inputs decide shapes than were known: [`ModelFile::class`] knows them
    /// now, and its new class is to be tried.
    pub fn specialise(&self, class: &ShapeClass, folder: &dyn ConstantFolder) -> LoadResult<Arc<Model>> {
        if let Some(fixed) = &self.fixed {
            return Ok(Arc::clone(fixed));
        }
        let mut inputs = Vec::with_capacity(class.dims.len());
        for (index, declared) in self.file.inputs().iter().enumerate() {
            let sizes = class.dims.get(index).ok_or_else(|| LoadError::malformed("a class with too few inputs"))?;
            let value = class.values.iter().find(|(input, _)| *input == index);
            let value = value.map(|(_, bytes)| Constant::new(declared.dtype, Shape::new(sizes)?, bytes)).transpose()?;
            let rows = self.batched.then_some(Dim::Batch);
            inputs.push(ReadInput {
                dims: rows.into_iter().chain(sizes.iter().map(|&size| Dim::Fixed(size))).collect(),
                value,
            });
        }
        let read = read(&self.file, &inputs, &Folding::new(folder), self.precision);
        let graph = read.map_err(|error| match error.kind() {
            LoadErrorKind::NeedsValues => self.learn_values(error),
            _ => error,
        })?;
        self.model(graph, true).map(Arc::new)
    }

    /// Notes the inputs that `error` asks for; gives the reason when they cannot be had.
    fn learn_values(&self, error: LoadError) -> LoadError {
        match value_inputs(&self.file, error.clone()) {
            Err(refusal) => refusal,
            Ok(needed) => {
                let mut values = self.values.write();
                let before = values.len();
                values.extend(needed);
                values.sort_unstable();
                values.dedup();
                match values.len() > before {
                    true => error,
                    false => LoadError::internal("the model could not be planned", error.to_string()),
                }
            }
        }
    }

    fn model(&self, graph: Graph, fewer_rows: bool) -> LoadResult<Model> {
        Model::new(graph, Arc::clone(&self.signature), self.arena_limit, fewer_rows)
    }
}

impl fmt::Debug for ModelFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFile")
            .field("signature", &self.signature)
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

/// How a file's requests can be served.
struct Mode {
    batched: bool,
    values: Vec<usize>,
    /// A graph for sizes that were tried, the file's own where none vary; `None` when values decide shapes.
    tried: Option<Graph>,
}

/// Whether dimension 0 of all inputs is symbolic under one name, so that it may count rows.
fn counts_rows(inputs: &[DeclaredInput]) -> bool {
    let first = |input: &DeclaredInput| match input.dims.first() {
        Some(Dimension::Symbolic(name)) => Some(name.clone()),
        _ => None,
    };
    let Some(name) = inputs.first().and_then(first) else { return false };
    inputs.iter().all(|input| first(input).as_ref() == Some(&name))
}

/// Whether any dimension but the rows varies.
fn varying(inputs: &[DeclaredInput], batched: bool) -> bool {
    let mut others = inputs.iter().flat_map(|input| input.dims.iter().skip(usize::from(batched)));
    others.any(|dim| matches!(dim, Dimension::Symbolic(_)))
}

/// With rows if they stay apart, else each request alone. When neither can be, the error is that of the way the file means.
fn find_any_mode(file: &OnnxFile, options: &LoadOptions<'_>, folding: &Folding<'_>) -> LoadResult<Mode> {
    if !counts_rows(file.inputs()) {
        return find_mode(file, false, options, folding);
    }
    find_mode(file, true, options, folding).or_else(|error| match error.kind() {
        LoadErrorKind::Limit | LoadErrorKind::Internal | LoadErrorKind::Storage => Err(error),
        LoadErrorKind::RowsMeet | LoadErrorKind::NeedsValues => find_mode(file, false, options, folding),
        _ => find_mode(file, false, options, folding).map_err(|_| error),
    })
}

fn find_mode(file: &OnnxFile, batched: bool, options: &LoadOptions<'_>, folding: &Folding<'_>) -> LoadResult<Mode> {
    let sizes = if varying(file.inputs(), batched) { &TRIED_SIZES[..] } else { &[1] };
    let mut first = None;
    for (size, first_size) in sizes.iter().flat_map(|&size| [(size, 1), (size, size)]) {
        let tried = file.inputs().iter().map(|input| tried_input(input, batched, size, first_size));
        let inputs: Vec<ReadInput> = tried.collect();
        match read(file, &inputs, folding, options.precision) {
            Ok(graph) => return Ok(Mode { batched, values: Vec::new(), tried: Some(graph) }),
            Err(error) => match error.kind() {
                LoadErrorKind::NeedsValues if batched => return Err(error),
                LoadErrorKind::NeedsValues => {
                    let values = value_inputs(file, error)?;
                    return Ok(Mode { batched, values, tried: None });
                }
                LoadErrorKind::RowsMeet | LoadErrorKind::Internal | LoadErrorKind::Storage => return Err(error),
                _ => first = first.or(Some(error)),
            },
        }
    }
    Err(first.unwrap_or_else(|| LoadError::malformed("the model fits no sizes")))
}

fn tried_input(input: &DeclaredInput, batched: bool, size: usize, first_size: usize) -> ReadInput {
    let dim = |(index, dim): (usize, &Dimension)| match dim {
        Dimension::Fixed(size) => Dim::Fixed(*size),
        Dimension::Symbolic(_) if batched && index == 0 => Dim::Batch,
        Dimension::Symbolic(_) if index == 0 && input.dims.len() > 1 => Dim::Fixed(first_size),
        Dimension::Symbolic(_) => Dim::Fixed(size),
    };
    ReadInput { dims: input.dims.iter().enumerate().map(dim).collect(), value: None }
}

/// The inputs that `error` says are needed, and those that are likely to be: a few integers each. Fails when data decides shapes.
fn value_inputs(file: &OnnxFile, error: LoadError) -> LoadResult<Vec<usize>> {
    let needed = error.inputs().to_vec();
    if needed.is_empty() {
        return Err(LoadError::unsupported(error.message().to_string()));
    }
    for &index in &needed {
        let input = &file.inputs()[index];
        if !decides_shapes(input) {
            return Err(LoadError::unsupported(format!(
                "{}, but it depends on the values of input {}, which is data: shapes that depend on data are not supported",
                error.message(),
                quoted(&input.name)
            )));
        }
    }
    let likely = |input: &DeclaredInput| {
        let fixed = input.dims.iter().all(|dim| matches!(dim, Dimension::Fixed(_)));
        fixed && input.dims.len() <= 1 && matches!(input.dtype, DType::Int32 | DType::Int64) && decides_shapes(input)
    };
    let inputs = file.inputs().iter().enumerate();
    Ok(inputs.filter(|(index, input)| needed.contains(index) || likely(input)).map(|(index, _)| index).collect())
}

/// Whether an input's values may decide shapes: few integers, truth values or scales, or what is small however it varies. A
/// request's data is neither: a plan for every image would be a plan for one.
fn decides_shapes(input: &DeclaredInput) -> bool {
    let fixed = input.dims.iter().all(|dim| matches!(dim, Dimension::Fixed(_)));
    let elements = input.dims.iter().try_fold(1usize, |product, dim| match dim {
        Dimension::Fixed(size) => product.checked_mul(*size),
        Dimension::Symbolic(_) => Some(product),
    });
    let small = elements.is_some_and(|elements| elements <= MAX_VALUES);
    let float = matches!(input.dtype, DType::Fp16 | DType::Bf16 | DType::Fp32 | DType::Fp64);
    small && input.dtype != DType::Bytes && (!float || fixed || input.dims.len() <= 1)
}

fn read(file: &OnnxFile, inputs: &[ReadInput], folding: &Folding<'_>, precision: Precision) -> LoadResult<Graph> {
    let mut graph = reader::read(file, inputs, folding)?;
    passes::optimise(&mut graph, folding, precision)?;
    Ok(graph)
}

fn signature(file: &OnnxFile, batched: bool, max_batch: usize, tried: Option<&Graph>) -> LoadResult<ModelSignature> {
    let named = |(index, dim): (usize, &Dimension)| match dim {
        Dimension::Symbolic(name) if name.is_empty() && index == 0 && batched => Dimension::Symbolic("batch".into()),
        dim => dim.clone(),
    };
    let input = |input: &DeclaredInput| TensorSpec {
        name: input.name.clone(),
        dtype: input.dtype,
        dims: input.dims.iter().enumerate().map(named).collect(),
    };
    let inputs: Vec<TensorSpec> = file.inputs().iter().map(input).collect();
    let rows = inputs.first().and_then(|input| input.dims.first()).filter(|_| batched).cloned();
    let varies = varying(file.inputs(), batched);
    let outputs = (0..file.outputs().len()).map(|index| output_spec(file, index, tried, rows.as_ref(), varies));
    Ok(ModelSignature { inputs, outputs: outputs.collect::<LoadResult<_>>()?, batched, max_batch })
}

/// An output: what a graph that was tried makes of it where that holds for all sizes, else what the file declares.
fn output_spec(
    file: &OnnxFile,
    index: usize,
    tried: Option<&Graph>,
    rows: Option<&Dimension>,
    varies: bool,
) -> LoadResult<TensorSpec> {
    let output = &file.outputs()[index];
    let about = |error: LoadError| error.context(format_args!("output {}", quoted(&output.name)));
    let declared = declared_type(output).map_err(about)?;
    let found = tried.and_then(|graph| graph.outputs.get(index).map(|output| graph.tensor(output.value)));
    let dtype = match (found, declared) {
        (Some(found), _) => found.dtype,
        (None, Some(declared)) => element_type(declared.elem_type).map_err(about)?,
        (None, None) => return Err(about(LoadError::unsupported("its type is not declared"))),
    };
    let shape = declared.and_then(|declared| declared.shape.as_ref());
    let declared_dim =
        |axis: usize| match shape.and_then(|shape| shape.dim.get(axis)).and_then(|dim| dim.value.as_ref()) {
            Some(dimension_proto::Value::DimValue(size)) => match usize::try_from(*size) {
                Ok(size) if size > 0 => Dimension::Fixed(size),
                _ => Dimension::Symbolic("".into()),
            },
            Some(dimension_proto::Value::DimParam(name)) => Dimension::Symbolic(name.as_str().into()),
            None => Dimension::Symbolic("".into()),
        };
    let dims = match (found, shape) {
        (Some(found), _) => {
            let dim = |(axis, dim): (usize, &Dim)| match dim {
                Dim::Batch => rows.cloned().unwrap_or(Dimension::Symbolic("batch".into())),
                Dim::Fixed(size) if !varies => Dimension::Fixed(*size),
                Dim::Fixed(_) => declared_dim(axis),
            };
            found.dims.iter().enumerate().map(dim).collect()
        }
        (None, Some(shape)) => (0..shape.dim.len()).map(declared_dim).collect(),
        (None, None) => return Err(about(LoadError::unsupported("its shape is not declared"))),
    };
    Ok(TensorSpec { name: output.name.as_str().into(), dtype, dims })
}
