//! A loaded model version: its signature, its constants and its plans. Loading reads the file, runs the passes and plans the
//! largest batch once, so that whatever is wrong or too large is refused here and never at run time. It executes nothing and is
//! the entry to this crate for the runtime.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use insula_core::{Dimension, Error, ModelSignature, Result, TensorSpec};
use sha2::{Digest, Sha256};

use crate::constant::Constant;
use crate::error::{LoadError, LoadErrorKind, LoadResult};
use crate::external_data::ExternalData;
use crate::graph::{Dim, Graph, ValueId};
use crate::passes;
use crate::passes::constant_folding::ConstantFolder;
use crate::passes::precision::Precision;
use crate::plan::LogicalPlan;
use crate::reader;

/// The batch size that a model has unless told otherwise.
pub const DEFAULT_MAX_BATCH: usize = 32;
/// The largest batch size that can be asked for.
pub const LARGEST_MAX_BATCH: usize = 1024;

/// How to load a model.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The numbers to compute in.
    pub precision: Precision,
    /// The most rows in a batch, 1 to [`LARGEST_MAX_BATCH`]; a model with fixed dimensions has 1.
    pub max_batch: usize,
    /// The most bytes that its constants may have.
    pub constant_limit: u64,
    /// The most bytes that the intermediates of its largest batch may take.
    pub arena_limit: u64,
    /// Computes what depends on constants alone.
    pub folder: &'a dyn ConstantFolder,
}

impl<'a> LoadOptions<'a> {
    /// The file's precision, 32 rows, 8 GiB of constants and of intermediates.
    pub fn new(folder: &'a dyn ConstantFolder) -> LoadOptions<'a> {
        LoadOptions {
            precision: Precision::File,
            max_batch: DEFAULT_MAX_BATCH,
            constant_limit: 8 << 30,
            arena_limit: 8 << 30,
            folder,
        }
    }
}

/// A model version, ready to be lowered on any device.
pub struct Model {
    signature: Arc<ModelSignature>,
    graph: Graph,
    content_hash: [u8; 32],
}

impl Model {
    /// Loads the ONNX file in `onnx`, with external data from `external`. The error names the node, input or constant at fault.
    pub fn load(onnx: Bytes, external: &dyn ExternalData, options: &LoadOptions<'_>) -> LoadResult<Model> {
        if !(1..=LARGEST_MAX_BATCH).contains(&options.max_batch) {
            return Err(LoadError::new(
                LoadErrorKind::Settings,
                format!("max_batch is {}, expected 1 to {LARGEST_MAX_BATCH}", options.max_batch),
            ));
        }
        let read = reader::read(onnx, external, options.constant_limit)?;
        let mut graph = read.graph;
        passes::optimise(&mut graph, options.folder, options.precision)?;
        let signature = signature(&graph, read.batch.as_deref(), options.max_batch);
        let plan = LogicalPlan::new(&graph, signature.max_batch)?;
        if plan.arena_bytes as u64 > options.arena_limit {
            return Err(LoadError::limit(format!(
                "the intermediates of {} rows take {} bytes, the limit is {}: lower max_batch",
                plan.rows, plan.arena_bytes, options.arena_limit
            )));
        }
        let content_hash = content_hash(&graph);
        Ok(Model { signature: Arc::new(signature), graph, content_hash })
    }

    /// Inputs, outputs and how requests may be batched.
    pub fn signature(&self) -> Arc<ModelSignature> {
        Arc::clone(&self.signature)
    }

    /// The constants that plans refer to.
    pub fn constants(&self) -> &[Constant] {
        &self.graph.constants
    }

    /// The bytes of the constants.
    pub fn constant_bytes(&self) -> usize {
        self.graph.constants.iter().map(|constant| constant.bytes().len()).sum()
    }

    /// SHA-256 of the constants and of the operations that use them: equal for models that can share packed weights, whatever
    /// their names, batch sizes and tenants.
    pub fn content_hash(&self) -> [u8; 32] {
        self.content_hash
    }

    /// The batch sizes worth a lowered plan: powers of two below the largest batch, and that.
    pub fn buckets(&self) -> Vec<usize> {
        let most = self.signature.max_batch;
        let powers = std::iter::successors(Some(1usize), |rows| rows.checked_mul(2));
        powers.take_while(|rows| *rows < most).chain([most]).collect()
    }

    /// The plan for a batch of `rows` rows, from 1 to the signature's `max_batch`.
    pub fn logical_plan(&self, rows: usize) -> Result<LogicalPlan> {
        if !(1..=self.signature.max_batch).contains(&rows) {
            return Err(Error::invalid(format!(
                "a batch has {rows} rows, the model takes 1 to {}",
                self.signature.max_batch
            )));
        }
        Ok(LogicalPlan::new(&self.graph, rows)?)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("signature", &self.signature)
            .field("nodes", &self.graph.nodes.len())
            .field("constant_bytes", &self.constant_bytes())
            .finish_non_exhaustive()
    }
}

fn signature(graph: &Graph, batch: Option<&str>, max_batch: usize) -> ModelSignature {
    let spec = |name: &str, value: ValueId| {
        let tensor = graph.tensor(value);
        let dimension = |dim: &Dim| match dim {
            Dim::Fixed(size) => Dimension::Fixed(*size),
            Dim::Batch => Dimension::Symbolic(batch.unwrap_or("batch").into()),
        };
        TensorSpec { name: name.into(), dtype: tensor.dtype, dims: tensor.dims.iter().map(dimension).collect() }
    };
    ModelSignature {
        inputs: graph.inputs.iter().map(|&input| spec(&graph.values[input.index()].name, input)).collect(),
        outputs: graph.outputs.iter().map(|output| spec(&output.name, output.value)).collect(),
        batched: batch.is_some(),
        max_batch: if batch.is_some() { max_batch } else { 1 },
    }
}

/// Types, shapes and bytes of the constants; then each node's operation, wiring and epilogue. Names are left out.
fn content_hash(graph: &Graph) -> [u8; 32] {
    let mut hash = Sha256::new();
    for constant in &graph.constants {
        hash.update(format!("{} {} {}\n", constant.dtype(), constant.shape(), constant.bytes().len()));
        hash.update(constant.bytes());
    }
    for value in &graph.values {
        hash.update(format!("{:?} {:?}\n", value.source, value.tensor));
    }
    for node in &graph.nodes {
        hash.update(format!("{:?} {:?} {:?} {:?}\n", node.op, node.inputs, node.output, node.epilogue));
    }
    hash.finalize().into()
}
