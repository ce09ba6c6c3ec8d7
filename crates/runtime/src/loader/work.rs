//! What the loader's thread does with an order: files to model, model to plans, plans into the host budget. A panic in it
//! counts as a file that was refused. Versions of the catalog that several tenants have are loaded once.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use insula_core::{Error, ModelName, Result, TenantId, Version};
use insula_model::{
    LoadOptions, ModelFile, ModelSettings, Precision, PrivateModels, Repository, VersionFiles, VersionFingerprint,
};
use insula_store::Precision as GrantedPrecision;
use insula_telemetry::metrics::Metrics;

use crate::loader::{LoadOrder, LoadSource, LoadedVersions};
use crate::model::{LoadedModel, LoadedParts, ModelPlans, VaryingModel};
use crate::plans::{PlanBuilder, PlanCache};
use crate::settings::RuntimeSettings;

/// What makes a loaded version of the catalog the same for two tenants: its place, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SharedKey {
    catalog: ModelName,
    version: Version,
    precision: &'static str,
    max_batch: Option<usize>,
    found: Found,
}

/// What was found: told by the files without reading them, so that a hundred tenants read a model once, or by what they hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Found {
    Files(Option<VersionFingerprint>),
    Content([u8; 32]),
}

/// The loader's state.
pub(super) struct LoaderWork {
    builder: Arc<PlanBuilder>,
    cache: Arc<PlanCache>,
    metrics: Metrics,
    catalog: Option<Arc<Repository>>,
    state: PathBuf,
    shared: HashMap<SharedKey, Weak<LoadedModel>>,
}

impl LoaderWork {
    pub(super) fn new(settings: &RuntimeSettings, builder: Arc<PlanBuilder>, cache: Arc<PlanCache>) -> LoaderWork {
        LoaderWork {
            builder,
            cache,
            metrics: settings.metrics.clone(),
            catalog: settings.models.clone().map(|folder| Arc::new(Repository::new(folder))),
            state: settings.state.clone(),
            shared: HashMap::new(),
        }
    }

    /// Carries out `order`.
    pub(super) fn load(&mut self, order: &LoadOrder) -> Result<LoadedVersions> {
        let model = &order.model;
        let loaded = catch_unwind(AssertUnwindSafe(|| match &order.source {
            LoadSource::Catalog { catalog, version, precision } => self.load_catalog(catalog, *version, *precision),
            LoadSource::Private { version, precision } => self.load_private(&order.tenant, model, *version, *precision),
            LoadSource::Upload { files, precision } => self.load_upload(&order.tenant, model, files, *precision),
        }));
        loaded
            .unwrap_or_else(|_| {
                tracing::error!(tenant = %order.tenant, %model, "loading a model panicked");
                Err(Error::invalid("the file could not be read: it is damaged, or of a kind that is not supported"))
            })
            .map_err(|error| error.context(format_args!("model `{model}`")))
    }

    /// Removes a tenant's own files of `model`; says whether there were any.
    pub(super) fn forget(&mut self, tenant: &TenantId, model: &ModelName) -> Result<bool> {
        let private = PrivateModels::open(&self.state, tenant)?;
        if !private.repository().names()?.contains(model) {
            return Ok(false);
        }
        for version in private.repository().versions(model)? {
            private.remove(model, version)?;
        }
        Ok(true)
    }

    fn load_catalog(
        &mut self,
        name: &ModelName,
        version: Option<Version>,
        precision: Option<GrantedPrecision>,
    ) -> Result<LoadedVersions> {
        let repository = self.catalog.clone().ok_or_else(|| {
            Error::not_found(format!("the catalog has no model `{name}`: no models folder is set (see --models)"))
        })?;
        let settings = with_precision(repository.settings(name)?, precision);
        self.load_versions(&repository, name, version, |work, number| {
            let mut key = SharedKey {
                catalog: name.clone(),
                version: number,
                precision: precision_name(&settings),
                max_batch: settings.max_batch,
                found: Found::Files(repository.fingerprint(name, number)),
            };
            if let Some(loaded) = work.shared.get(&key).and_then(Weak::upgrade) {
                return Ok(loaded);
            }
            let files = key.clone();
            let model = work.read(|options| Ok(repository.load(name, number, &options)?), &settings)?;
            key.found = Found::Content(model.content_hash());
            let loaded = match work.shared.get(&key).and_then(Weak::upgrade) {
                Some(loaded) => loaded,
                None => work.lower(name, model, &settings)?,
            };
            work.shared.retain(|_, model| model.strong_count() > 0);
            // files that changed while they were read are read again by the next one
            if matches!(&files.found, Found::Files(Some(_)))
                && files.found == Found::Files(repository.fingerprint(name, number))
            {
                work.shared.insert(files, Arc::downgrade(&loaded));
            }
            work.shared.insert(key, Arc::downgrade(&loaded));
            Ok(loaded)
        })
    }

    fn load_private(
        &mut self,
        tenant: &TenantId,
        name: &ModelName,
        version: Option<Version>,
        precision: Option<GrantedPrecision>,
    ) -> Result<LoadedVersions> {
        let private = PrivateModels::open(&self.state, tenant)?;
        let repository = private.repository();
        let settings = with_precision(repository.settings(name)?, precision);
        self.load_versions(repository, name, version, |work, number| {
            let model = work.read(|options| Ok(repository.load(name, number, &options)?), &settings)?;
            work.lower(name, model, &settings)
        })
    }

    /// All versions that were sent must load; only then do the files become the tenant's own.
    fn load_upload(
        &mut self,
        tenant: &TenantId,
        name: &ModelName,
        files: &BTreeMap<Version, VersionFiles>,
        precision: Option<GrantedPrecision>,
    ) -> Result<LoadedVersions> {
        let settings = with_precision(ModelSettings::default(), precision);
        let mut versions = Vec::new();
        for (number, files) in files {
            let loaded = self
                .read(|options| Ok(files.load(&options)?), &settings)
                .and_then(|model| self.lower(name, model, &settings))
                .map_err(|error| error.context(format_args!("version {number}")))?;
            versions.push((*number, loaded));
        }
        let private = PrivateModels::open(&self.state, tenant)?;
        for (number, files) in files {
            private.store(name, *number, files)?;
        }
        Ok(LoadedVersions { beside_others: true, versions, failures: Vec::new() })
    }

    /// Loads the versions of `name` that are wanted; fails only when none could be.
    fn load_versions(
        &mut self,
        repository: &Repository,
        name: &ModelName,
        version: Option<Version>,
        mut load: impl FnMut(&mut LoaderWork, Version) -> Result<Arc<LoadedModel>>,
    ) -> Result<LoadedVersions> {
        let numbers = match version {
            Some(version) => vec![version],
            None => repository.versions(name)?,
        };
        let (mut versions, mut failures) = (Vec::new(), Vec::new());
        for number in numbers {
            match load(self, number) {
                Ok(loaded) => versions.push((number, loaded)),
                Err(error) => failures.push((number, error)),
            }
        }
        match failures.first() {
            Some((_, error)) if versions.is_empty() => Err(error.clone()),
            None if versions.is_empty() => Err(Error::not_found("it has no version")),
            _ => Ok(LoadedVersions { beside_others: false, versions, failures }),
        }
    }

    fn read(
        &self,
        read: impl FnOnce(LoadOptions<'_>) -> Result<ModelFile>,
        settings: &ModelSettings,
    ) -> Result<ModelFile> {
        read(settings.apply(LoadOptions::new(self.builder.device().folder())))
    }

    fn lower(&mut self, name: &ModelName, file: ModelFile, settings: &ModelSettings) -> Result<Arc<LoadedModel>> {
        let signature = file.signature();
        let plans = match file.fixed() {
            None => ModelPlans::Varying(Box::new(VaryingModel::new(file, self.builder.clone(), self.cache.clone()))),
            Some(model) => {
                let (plans, weights) = self.builder.build(model)?;
                let weight_bytes = weights.bytes() as u64;
                let share = self.builder.budget().reserve(weight_bytes)?;
                ModelPlans::Fixed { plans: Arc::new(plans), weight_bytes, share }
            }
        };
        let parts = LoadedParts {
            key: self.builder.next_key(),
            signature,
            plans,
            precision: precision_name(settings),
            labels: settings.labels.clone(),
            batches: self.metrics.register_batches(name),
        };
        Ok(Arc::new(LoadedModel::new(parts)))
    }
}

/// `settings` with the precision that a tenant's document asks for, if it does.
fn with_precision(mut settings: ModelSettings, granted: Option<GrantedPrecision>) -> ModelSettings {
    match granted {
        Some(GrantedPrecision::Fp16) => settings.precision = Some(Precision::Fp16),
        Some(GrantedPrecision::Fp32) => settings.precision = Some(Precision::Fp32),
        None => {}
    }
    settings
}

fn precision_name(settings: &ModelSettings) -> &'static str {
    match settings.precision.unwrap_or_default() {
        Precision::File => "file",
        Precision::Fp16 => "fp16",
        Precision::Fp32 => "fp32",
    }
}
