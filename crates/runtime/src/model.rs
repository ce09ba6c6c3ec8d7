//! Models as the runtime serves them: a version with its plans, shared by every tenant that has it, and the name under which
//! one tenant calls it. Immutable once made, but for the plans of models whose inputs vary. The loader makes them; admission, workers and metadata answers read them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use insula_core::{CheckedRequest, Code, Error, ModelName, ModelSignature, Result, Version};
use insula_exec::Weights;
use insula_memory::{BudgetShare, RequestMemory};
use insula_model::{ClassInput, LoadErrorKind, ModelFile, ShapeClass};
use insula_telemetry::metrics::{BatchMetrics, ModelMetrics};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::fair_queue::{PlanKey, TenantSlot};
use crate::plans::cache::ClassKey;
use crate::plans::{ClassPlans, PlanBuilder, PlanCache};

/// A model version on a device: everything that is the same for all tenants that have it.
pub struct LoadedModel {
    key: PlanKey,
    signature: Arc<ModelSignature>,
    plans: ModelPlans,
    precision: &'static str,
    labels: Vec<String>,
    batches: BatchMetrics,
}

/// The plans of a model version.
#[derive(Debug)]
pub enum ModelPlans {
    /// Nothing but rows varies: one class, built at load.
    Fixed {
        /// The plans.
        plans: Arc<ClassPlans>,
        /// Bytes of the weights.
        weight_bytes: u64,
        /// The weights' part of the host budget.
        share: BudgetShare,
    },
    /// Classes are built when requests ask for them.
    Varying(Box<VaryingModel>),
}

/// A model whose inputs vary in more than their rows.
#[derive(Debug)]
pub struct VaryingModel {
    file: ModelFile,
    builder: Arc<PlanBuilder>,
    cache: Arc<PlanCache>,
    /// The weights of the class that was built last, so that they stay when no class is kept; and their part of the budget.
    weights: Mutex<Option<(Arc<dyn Weights>, BudgetShare)>>,
}

impl VaryingModel {
    /// The model in `file`; plans are built by `builder` and kept in `cache`.
    pub fn new(file: ModelFile, builder: Arc<PlanBuilder>, cache: Arc<PlanCache>) -> VaryingModel {
        VaryingModel { file, builder, cache, weights: Mutex::default() }
    }
}

/// What [`LoadedModel::new`] is made of.
#[derive(Debug)]
pub struct LoadedParts {
    /// Names the model in route tables; unique in its runtime.
    pub key: PlanKey,
    /// Inputs, outputs and batching.
    pub signature: Arc<ModelSignature>,
    /// Its plans.
    pub plans: ModelPlans,
    /// `fp16`, `fp32` or `file`.
    pub precision: &'static str,
    /// Names of classes, if the model has them.
    pub labels: Vec<String>,
    /// Where its batches are counted.
    pub batches: BatchMetrics,
}

/// Whether a request can be queued.
#[derive(Debug)]
pub enum Planned {
    /// With these plans.
    Plans(Arc<ClassPlans>),
    /// Once plans for this class are built.
    Missing(ShapeClass),
}

/// What came of building plans.
#[derive(Debug)]
pub enum Built {
    /// The plans.
    Plans(Arc<ClassPlans>),
    /// The class was not known in full: more inputs decide shapes. Each request is to be classed anew.
    NeedsValues,
}

impl LoadedModel {
    /// Puts the parts together.
    pub fn new(parts: LoadedParts) -> LoadedModel {
        let LoadedParts { key, signature, plans, precision, labels, batches } = parts;
        LoadedModel { key, signature, plans, precision, labels, batches }
    }

    /// Its name in route tables.
    pub fn key(&self) -> PlanKey {
        self.key
    }

    /// Inputs, outputs and how requests may be batched.
    pub fn signature(&self) -> &Arc<ModelSignature> {
        &self.signature
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

    /// Bytes of weights and plans; of a model whose inputs vary, those of its weights once a request has had it planned.
    pub fn bytes(&self) -> u64 {
        match &self.plans {
            ModelPlans::Fixed { plans, weight_bytes, .. } => weight_bytes + plans.bytes(),
            ModelPlans::Varying(varying) => varying.weights.lock().as_ref().map_or(0, |(_, share)| share.bytes()),
        }
    }

    /// The plans for `request`, whose tensors lie in `inputs`, if they are there.
    pub fn plans_for(&self, request: &CheckedRequest, inputs: &RequestMemory) -> Result<Planned> {
        let varying = match &self.plans {
            ModelPlans::Fixed { plans, .. } => return Ok(Planned::Plans(plans.clone())),
            ModelPlans::Varying(varying) => varying,
        };
        let classed: SmallVec<[ClassInput<'_>; 4]> = request
            .inputs()
            .iter()
            .map(|tensor| ClassInput { shape: tensor.shape(), bytes: inputs.input_bytes(tensor.slot()) })
            .collect();
        let key = ClassKey { model: self.key, class: varying.file.class(&classed)? };
        Ok(match varying.cache.get(&key) {
            Some(plans) => Planned::Plans(plans),
            None => Planned::Missing(key.class),
        })
    }

    /// Builds the plans of `class` for `tenant` and keeps them. Only the planner calls this. The error says what does not fit.
    pub fn build_class(&self, class: &ShapeClass, tenant: TenantSlot) -> Result<Built> {
        let varying = match &self.plans {
            ModelPlans::Fixed { plans, .. } => return Ok(Built::Plans(plans.clone())),
            ModelPlans::Varying(varying) => varying,
        };
        let key = ClassKey { model: self.key, class: class.clone() };
        if let Some(plans) = varying.cache.get(&key) {
            return Ok(Built::Plans(plans));
        }
        let model = match varying.file.specialise(class, varying.builder.device().folder()) {
            Err(error) if error.kind() == LoadErrorKind::NeedsValues => return Ok(Built::NeedsValues),
            Err(error) => return Err(Error::from(error.context(format_args!("for inputs of shape {class}")))),
            Ok(model) => model,
        };
        let built = varying.builder.build(&model);
        let (plans, weights) = match built {
            Err(error) if error.code() == Code::Unavailable && varying.cache.give_up_half() => {
                varying.builder.build(&model)?
            }
            built => built?,
        };
        varying.keep_weights(weights)?;
        let plans = Arc::new(plans);
        varying.cache.insert(key, plans.clone(), plans.bytes(), tenant);
        Ok(Built::Plans(plans))
    }
}

impl VaryingModel {
    fn keep_weights(&self, weights: Arc<dyn Weights>) -> Result<()> {
        let mut kept = self.weights.lock();
        let bytes = weights.bytes() as u64;
        let share = match kept.take() {
            Some((_, mut share)) => {
                let (more, fewer) = (bytes.saturating_sub(share.bytes()), share.bytes().saturating_sub(bytes));
                share.grow(more)?;
                share.shrink(fewer);
                share
            }
            None => self.builder.budget().reserve(bytes)?,
        };
        *kept = Some((weights, share));
        Ok(())
    }
}

impl Drop for LoadedModel {
    fn drop(&mut self) {
        if let ModelPlans::Varying(varying) = &self.plans {
            varying.cache.forget(self.key);
        }
    }
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel").field("key", &self.key).field("bytes", &self.bytes()).finish_non_exhaustive()
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
