//! Adding tenants to a running house: domain, core, actor, keys, models, and a report of how each went. A model that fails
//! takes down neither its tenant nor another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use insula_core::{Error, ModelName, Result, TenantId, Version};
use insula_memory::{CpuBacking, Domain, DomainSettings};
use insula_store::{ModelGrant, TenantDocument, TenantState as DocumentState};

use crate::fair_queue::TenantSlot;
use crate::loader::LoadOrder;
use crate::runtime::Runtime;
use crate::tenant::life::TenantHome;
use crate::tenant::state::{LifeCycle, TenantState};
use crate::tenant::{TenantCore, TenantHandle};

/// How adding a tenant went.
#[derive(Debug)]
pub struct TenantReport {
    /// Whose report it is.
    pub tenant: TenantId,
    /// One line a model version.
    pub models: Vec<ModelReport>,
    /// Why the tenant could not be added at all.
    pub fault: Option<Error>,
}

/// How loading a model version went.
#[derive(Debug)]
pub struct ModelReport {
    /// The name the tenant calls it.
    pub name: ModelName,
    /// The version, if it came so far.
    pub version: Option<Version>,
    /// Whether it is ready, or why not.
    pub outcome: Result<()>,
    /// `fp16`, `fp32` or `file`.
    pub precision: &'static str,
    /// Bytes of weights and plans.
    pub bytes: u64,
}

impl Runtime {
    /// Adds the tenants of `documents`, their models loaded side by side. Blocks until each is ready or has failed.
    pub fn add_tenants(&self, documents: &[TenantDocument]) -> Vec<TenantReport> {
        std::thread::scope(|scope| {
            let started: Vec<_> = documents.iter().map(|document| scope.spawn(|| self.add_tenant(document))).collect();
            let reports = started.into_iter().zip(documents).map(|(thread, document)| {
                thread.join().unwrap_or_else(|_| TenantReport {
                    tenant: document.id.clone(),
                    models: Vec::new(),
                    fault: Some(Error::internal("the tenant could not be added", "its start panicked")),
                })
            });
            reports.collect()
        })
    }

    /// Adds one tenant. Blocks until its models are ready or have failed.
    pub fn add_tenant(&self, document: &TenantDocument) -> TenantReport {
        let tenant = document.id.clone();
        let started = self.open_tenant(document).and_then(|handle| self.load_models(&handle, document));
        match started {
            Ok(models) => TenantReport { tenant, models, fault: None },
            Err(fault) => TenantReport { tenant, models: Vec::new(), fault: Some(fault) },
        }
    }

    fn open_tenant(&self, document: &TenantDocument) -> Result<TenantHandle> {
        let slot = TenantSlot(self.slots.fetch_add(1, Ordering::SeqCst));
        let settings = DomainSettings {
            label: document.id.to_string(),
            limit: document.quota.memory,
            numa_node: self.settings.topology.home_node(slot.0 as usize),
            scrub: self.settings.scrub,
        };
        let domain = Domain::new(settings, Arc::new(CpuBacking::new()), &self.services.budget, &self.reaper)?;
        let metrics = self.services.metrics.register_tenant(&document.id);
        let grants = grants(document);
        let snapshot = TenantState::new(document.quota.clone()).snapshot();
        let core = TenantCore::new(document.id.clone(), slot, snapshot, domain, metrics, grants, self.services.clone());
        let handle = TenantHandle::new(Arc::new(core));
        handle.core().show_gauges();
        self.directory.enter(&handle, &document.keys)?;
        self.tenants.lock().push(TenantHome::open(handle.clone())?);
        Ok(handle)
    }

    fn load_models(&self, handle: &TenantHandle, document: &TenantDocument) -> Result<Vec<ModelReport>> {
        // this thread only waits: a loop of its own with timers and nothing else
        let waiter = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Error::internal("the tenant could not be started", error.to_string()))?;
        let mut reports = Vec::new();
        let granted = handle.core().grants().keys().cloned();
        let private = self.services.loader.private_models(handle.id())?.into_iter();
        let models: std::collections::BTreeSet<ModelName> = granted.chain(private).collect();
        for model in models {
            let source = handle.source_of(&model);
            let order = LoadOrder { tenant: handle.id().clone(), model: model.clone(), source };
            let loaded = waiter.block_on(self.services.loader.load(order));
            report(&mut reports, &model, &loaded);
            if let Err(error) = waiter.block_on(handle.install(model.clone(), loaded)) {
                tracing::debug!(tenant = %handle.id(), %model, %error, "a model was not installed");
            }
        }
        let next = match document.state {
            DocumentState::Active => LifeCycle::Serving,
            DocumentState::Suspended => LifeCycle::Suspended,
        };
        waiter.block_on(handle.advance(next))?;
        Ok(reports)
    }
}

fn grants(document: &TenantDocument) -> BTreeMap<ModelName, ModelGrant> {
    document.models.iter().map(|grant| (grant.name.clone(), grant.clone())).collect()
}

fn report(reports: &mut Vec<ModelReport>, model: &ModelName, loaded: &Result<crate::loader::LoadedVersions>) {
    let failed = |version, error: &Error| ModelReport {
        name: model.clone(),
        version,
        outcome: Err(error.clone()),
        precision: "-",
        bytes: 0,
    };
    match loaded {
        Err(error) => reports.push(failed(None, error)),
        Ok(loaded) => {
            reports.extend(loaded.versions.iter().map(|(version, ready)| ModelReport {
                name: model.clone(),
                version: Some(*version),
                outcome: Ok(()),
                precision: ready.precision(),
                bytes: ready.bytes(),
            }));
            reports.extend(loaded.failures.iter().map(|(version, error)| failed(Some(*version), error)));
        }
    }
}
