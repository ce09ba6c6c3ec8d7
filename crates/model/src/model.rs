//! A model for requests of one shape class: its signature, its constants and its plans. Making one plans the largest batch
//! once, so that whatever is wrong or too large is refused here and never at run time. It executes nothing; devices lower it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use insula_core::{Error, ModelSignature, Result};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::external_data::ExternalData;
use crate::graph::Graph;
use crate::model_file::ModelFile;
use crate::passes::constant_folding::ConstantFolder;
use crate::passes::precision::Precision;
use crate::plan::LogicalPlan;

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
    max_rows: usize,
}

impl Model {
    /// Loads the ONNX file in `onnx`, with external data from `external`, as one in which nothing but the rows varies. The error
    /// names the node, input or constant at fault, or the dimension that varies.
    pub fn load(onnx: Bytes, external: &dyn ExternalData, options: &LoadOptions<'_>) -> LoadResult<Arc<Model>> {
        let file = ModelFile::load(onnx, external, options)?;
        file.fixed().cloned().ok_or_else(|| {
            LoadError::unsupported("its inputs have sizes or values that vary: it is a model for each of their classes")
        })
    }

    /// The model whose graph is `graph`, for all rows of `signature`, or where `fewer_rows` is allowed, for those whose
    /// intermediates fit `arena_limit` bytes. Fails when they do not.
    pub(crate) fn new(
        graph: Graph,
        signature: Arc<ModelSignature>,
        arena_limit: u64,
        fewer_rows: bool,
    ) -> LoadResult<Model> {
        let mut max_rows = signature.max_batch;
        loop {
            let plan = LogicalPlan::new(&graph, max_rows)?;
            if plan.arena_bytes as u64 <= arena_limit {
                break;
            }
            if max_rows == 1 || !fewer_rows {
                return Err(LoadError::limit(format!(
                    "the intermediates of {} rows take {} bytes, the limit is {arena_limit}: lower max_batch",
                    plan.rows, plan.arena_bytes
                )));
            }
            max_rows /= 2;
        }
        Ok(Model { signature, graph, max_rows })
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

    /// The batch sizes worth a lowered plan: powers of two below the largest batch, and that.
    pub fn buckets(&self) -> Vec<usize> {
        let most = self.max_rows;
        let powers = std::iter::successors(Some(1usize), |rows| rows.checked_mul(2));
        powers.take_while(|rows| *rows < most).chain([most]).collect()
    }

    /// The most rows of a batch: the signature's `max_batch`, or fewer where these sizes would take too much memory.
    pub fn max_rows(&self) -> usize {
        self.max_rows
    }

    /// The plan for a batch of `rows` rows, from 1 to [`Model::max_rows`].
    pub fn logical_plan(&self, rows: usize) -> Result<LogicalPlan> {
        if !(1..=self.max_rows).contains(&rows) {
            return Err(Error::invalid(format!(
                "a batch has {rows} rows, the model takes 1 to {} of this size",
                self.max_rows
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
