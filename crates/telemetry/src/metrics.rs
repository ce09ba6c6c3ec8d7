//! The registry of everything that is counted, and its rendering for Prometheus. Series are made here, once for each
//! configured tenant, model and worker, by whoever configures them; what comes back are handles whose hot paths look
//! nothing up. Handles take no names, so that nothing a caller sends can become a label.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use insula_core::{Clock, ModelName, TenantId};
use parking_lot::{Mutex, RwLock};

mod batch;
pub(crate) mod counter;
mod exposition;
mod families;
mod histogram;
mod model;
mod process;
mod refusals;
mod request;
mod server;
mod tenant;

pub use batch::BatchMetrics;
pub use exposition::Exposition;
pub use model::ModelMetrics;
pub use request::PendingRequest;
pub use server::{Actor, WorkerMetrics};
pub use tenant::{ModelReady, TenantGauges, TenantLifecycle, TenantMetrics};

use model::UNKNOWN;
pub(crate) use server::ServerSeries;

/// All metrics of one server. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Registry>);

pub(crate) struct Registry {
    clock: Arc<dyn Clock>,
    started: SystemTime,
    tenants: RwLock<BTreeMap<TenantId, TenantMetrics>>,
    unknown_tenant: TenantMetrics,
    batches: Mutex<BTreeMap<ModelName, std::sync::Weak<batch::BatchSeries>>>,
    server: ServerSeries,
}

impl Metrics {
    /// Metrics of a server that starts now. `version` is insula's; `clock` is what requests are timed by.
    pub fn new(version: &'static str, clock: Arc<dyn Clock>) -> Metrics {
        Metrics(Arc::new(Registry {
            unknown_tenant: TenantMetrics::new(None, clock.clone()),
            clock,
            started: SystemTime::now(),
            tenants: RwLock::new(BTreeMap::new()),
            batches: Mutex::new(BTreeMap::new()),
            server: ServerSeries::new(version),
        }))
    }

    /// The series of a configured tenant, made if they are not there: who is rebuilt goes on counting where it was. A tenant
    /// that is called as the label for unknown ones shares their series.
    pub fn register_tenant(&self, id: &TenantId) -> TenantMetrics {
        if id.as_str() == UNKNOWN {
            return self.0.unknown_tenant.clone();
        }
        let mut tenants = self.0.tenants.write();
        let make = || TenantMetrics::new(Some(id.clone()), self.0.clock.clone());
        tenants.entry(id.clone()).or_insert_with(make).clone()
    }

    /// Drops a tenant's series, its models' and its gauges. Handles that are still held count where nobody looks.
    pub fn remove_tenant(&self, id: &TenantId) {
        let removed = self.0.tenants.write().remove(id);
        if let Some(removed) = removed {
            removed.series().retire();
        }
    }

    /// The series for requests of nobody that is configured: no key, or one that is not known.
    pub fn unknown_tenant(&self) -> &TenantMetrics {
        &self.0.unknown_tenant
    }

    /// The series of a model that `tenant` is configured to call as `name`, made if they are not there.
    pub fn register_model(&self, tenant: &TenantMetrics, name: &ModelName) -> ModelMetrics {
        tenant.series().model(name)
    }

    /// Drops the series of a model that `tenant` may no longer call.
    pub fn remove_model(&self, tenant: &TenantMetrics, name: &ModelName) {
        tenant.series().remove_model(name);
    }

    /// The batch series of a loaded model, for all of its versions and tenants; they last while a handle does.
    pub fn register_batches(&self, model: &ModelName) -> BatchMetrics {
        let mut batches = self.0.batches.lock();
        batches.retain(|_, series| series.strong_count() > 0);
        if let Some(series) = batches.get(model).and_then(std::sync::Weak::upgrade) {
            return BatchMetrics(series);
        }
        let made = BatchMetrics::new(model.clone());
        batches.insert(model.clone(), Arc::downgrade(&made.0));
        made
    }

    /// The series of the worker with this number, made if they are not there; it is down until it says otherwise.
    pub fn register_worker(&self, number: usize) -> WorkerMetrics {
        self.0.server.worker(number)
    }

    /// Counts an actor that was built again after a failure.
    pub fn count_rebuild(&self, actor: Actor) {
        self.0.server.rebuilds(actor).add(1);
    }

    /// Says whether the last reading of the configuration was in order.
    pub fn set_config_reload(&self, ok: bool) {
        self.0.server.config_ok.store(ok, Ordering::Relaxed);
    }

    /// Everything as text, in the format that the `Accept` header asks for.
    pub fn render(&self, accept: Option<&str>) -> Exposition {
        exposition::render(self, accept)
    }

    /// The clock that requests are timed by.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn server(&self) -> &ServerSeries {
        &self.0.server
    }

    /// Every tenant to show: those configured, then `unknown`.
    fn tenants(&self) -> Vec<TenantMetrics> {
        let mut tenants: Vec<TenantMetrics> = self.0.tenants.read().values().cloned().collect();
        tenants.push(self.0.unknown_tenant.clone());
        tenants
    }

    fn batches(&self) -> Vec<BatchMetrics> {
        self.0.batches.lock().values().filter_map(std::sync::Weak::upgrade).map(BatchMetrics).collect()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("server", &self.0.server).finish_non_exhaustive()
    }
}
