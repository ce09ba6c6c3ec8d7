//! Models as the runtime serves them: a version's lowered plans, shared by every tenant that has it, and the name under
//! which one tenant calls it. Immutable once made. The loader makes them; admission, workers and metadata answers read them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use insula_core::{Error, ModelName, ModelSignature, Result, Version};
use insula_exec::LoweredPlan;
use insula_memory::BudgetShare;
use insula_telemetry::metrics::{BatchMetrics, ModelMetrics};

use crate::fair_queue::PlanKey;

/// A model version on a device: everything that is the same for all tenants that have it.
pub struct LoadedModel {
    key: PlanKey,
    signature: Arc<ModelSignature>,
    plans: Vec<Arc<dyn LoweredPlan>>,
    outputs: Vec<OutputRoom>,
    precision: &'static str,
    labels: Vec<String>,
    batches: BatchMetrics,
    _share: BudgetShare,
    bytes: u64,
}

/// What is known of an output's room before a request runs.
#[derive(Debug, Clone)]
pub struct OutputRoom {
    /// The output's name.
    pub name: Arc<str>,
    /// The input that it passes through unchanged, if it does.
    pub passes_through: Option<usize>,
}

/// What [`LoadedModel::new`] is made of.
#[derive(Debug)]
pub struct LoadedParts {
    /// Names the model in fair queues and route tables; unique in its runtime.
    pub key: PlanKey,
    /// Inputs, outputs and batching.
    pub signature: Arc<ModelSignature>,
    /// One plan a bucket, ascending; at least one.
    pub plans: Vec<Arc<dyn LoweredPlan>>,
    /// The input that each output passes through unchanged, if it does.
    pub passes_through: Vec<Option<usize>>,
    /// `fp16`, `fp32` or `file`.
    pub precision: &'static str,
    /// Names of classes, if the model has them.
    pub labels: Vec<String>,
    /// Where its batches are counted.
    pub batches: BatchMetrics,
    /// What the model takes of the host budget.
    pub share: BudgetShare,
    /// Bytes of weights and plans.
    pub bytes: u64,
}

impl LoadedModel {
    /// Puts the parts together. Fails when there is no plan.
    pub fn new(parts: LoadedParts) -> Result<LoadedModel> {
        let LoadedParts { key, signature, mut plans, passes_through, precision, labels, batches, share, bytes } = parts;
        if plans.is_empty() {
            return Err(Error::internal("the model has no plan", "no bucket was lowered"));
        }
        plans.sort_by_key(|plan| plan.bucket());
        let rooms = signature.outputs.iter().enumerate().map(|(output, spec)| OutputRoom {
            name: Arc::from(&*spec.name),
            passes_through: passes_through.get(output).copied().flatten(),
        });
        let outputs = rooms.collect();
        Ok(LoadedModel { key, signature, plans, outputs, precision, labels, batches, _share: share, bytes })
    }

    /// Its name in fair queues and route tables.
    pub fn key(&self) -> PlanKey {
        self.key
    }

    /// Inputs, outputs and batching.
    pub fn signature(&self) -> &Arc<ModelSignature> {
        &self.signature
    }

    /// What is known of each output's room.
    pub fn output_rooms(&self) -> &[OutputRoom] {
        &self.outputs
    }

    /// `fp16`, `fp32` or `file`.
    pub fn precision(&self) -> &'static str {
        self.precision
    }

    /// Names of classes, if the model has them.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Where its batches are counted.
    pub fn batches(&self) -> &BatchMetrics {
        &self.batches
    }

    /// Bytes of weights and plans.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The plan of the smallest bucket that holds `rows` rows, or the largest there is.
    pub fn plan_for(&self, rows: usize) -> &Arc<dyn LoweredPlan> {
        let fitting = self.plans.iter().find(|plan| plan.bucket() >= rows);
        fitting.unwrap_or(&self.plans[self.plans.len() - 1])
    }

    /// The largest arena that any of its plans needs, in bytes.
    pub fn arena_bytes(&self) -> usize {
        self.plans.iter().map(|plan| plan.arena_bytes()).max().unwrap_or(0)
    }
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel").field("key", &self.key).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// A model version under the name by which one tenant calls it.
#[derive(Debug)]
pub struct ServedModel {
    /// The tenant's name for it.
    pub name: ModelName,
    /// The version.
    pub version: Version,
    /// All ready versions of the model, ascending.
    pub versions: Arc<[Version]>,
    /// What all tenants share.
    pub loaded: Arc<LoadedModel>,
    /// Where this tenant's use is counted.
    pub metrics: ModelMetrics,
}

/// The ready versions of one of a tenant's models: at least one.
#[derive(Debug, Clone)]
pub struct ModelVersions {
    served: BTreeMap<Version, Arc<ServedModel>>,
    newest: Arc<ServedModel>,
}

impl ModelVersions {
    /// The versions of `name` whose uses are counted by `metrics`. Fails when there is none.
    pub fn new(
        name: &ModelName,
        loaded: Vec<(Version, Arc<LoadedModel>)>,
        metrics: &ModelMetrics,
    ) -> Result<ModelVersions> {
        let mut numbers: Vec<Version> = loaded.iter().map(|(version, _)| *version).collect();
        numbers.sort_unstable();
        let versions: Arc<[Version]> = numbers.into();
        let serve = |(version, loaded)| {
            let (name, versions, metrics) = (name.clone(), versions.clone(), metrics.clone());
            (version, Arc::new(ServedModel { name, version, versions, loaded, metrics }))
        };
        let served: BTreeMap<_, _> = loaded.into_iter().map(serve).collect();
        match served.last_key_value() {
            Some((_, newest)) => Ok(ModelVersions { newest: newest.clone(), served }),
            None => Err(Error::not_found(format!("model `{name}` has no version that could be loaded"))),
        }
    }

    /// The highest version.
    pub fn newest(&self) -> &Arc<ServedModel> {
        &self.newest
    }

    /// Exactly this version.
    pub fn get(&self, version: Version) -> Option<&Arc<ServedModel>> {
        self.served.get(&version)
    }

    /// All versions, ascending.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.served.values()
    }

    /// The numbers, for messages.
    pub fn listed(&self) -> String {
        let numbers: Vec<String> = self.served.keys().map(Version::to_string).collect();
        numbers.join(", ")
    }
}
