//! The series of one tenant, and the gauges that live with its runtime state and are read at each scrape. A handle is made
//! once when the tenant is configured; requests clone it. It takes no names: only [`super::Metrics`] makes series.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use insula_core::{Clock, ModelName, Refusal, TenantId, Version};
use parking_lot::{Mutex, RwLock};

use super::counter::Counter;
use super::model::{ModelMetrics, UNKNOWN};
use super::refusals::Refusals;
use super::request::PendingRequest;

/// The series of one tenant. Clones share them.
#[derive(Clone)]
pub struct TenantMetrics(Arc<TenantSeries>);

type ReadGauges = dyn Fn() -> TenantGauges + Send + Sync;

pub(super) struct TenantSeries {
    id: Option<TenantId>,
    clock: Arc<dyn Clock>,
    pub(super) host: Counter,
    pub(super) free_rows: Counter,
    pub(super) refusals: Refusals,
    models: RwLock<BTreeMap<ModelName, ModelMetrics>>,
    unknown_model: ModelMetrics,
    gauges: Mutex<Option<Arc<ReadGauges>>>,
}

/// Where a tenant stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantLifecycle {
    /// Its actor is being made.
    Starting,
    /// It is served.
    Serving,
    /// Its requests are refused until it is resumed.
    Suspended,
    /// It takes no new requests; those it has are ending.
    Draining,
    /// It is gone but for its figures.
    Stopped,
    /// It was rebuilt too often.
    Failed,
}

impl TenantLifecycle {
    /// Every state.
    pub const ALL: [TenantLifecycle; 6] = [
        TenantLifecycle::Starting,
        TenantLifecycle::Serving,
        TenantLifecycle::Suspended,
        TenantLifecycle::Draining,
        TenantLifecycle::Stopped,
        TenantLifecycle::Failed,
    ];

    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            TenantLifecycle::Starting => "starting",
            TenantLifecycle::Serving => "serving",
            TenantLifecycle::Suspended => "suspended",
            TenantLifecycle::Draining => "draining",
            TenantLifecycle::Stopped => "stopped",
            TenantLifecycle::Failed => "failed",
        }
    }
}

/// What a tenant's runtime state says at one moment.
#[derive(Debug, Clone)]
pub struct TenantGauges {
    /// Where it stands in its life.
    pub lifecycle: TenantLifecycle,
    /// Requests admitted and not yet answered.
    pub inflight_requests: u64,
    /// Requests waiting in fair queues.
    pub queued_requests: u64,
    /// Bytes of its domain that leases hold.
    pub domain_used: u64,
    /// Bytes of its domain that are backed by memory.
    pub domain_committed: u64,
    /// Bytes its domain may have.
    pub domain_limit: u64,
    /// Its models' versions; those whose handle is not registered with this tenant are left out.
    pub models: Vec<ModelReady>,
}

/// Whether a version of a tenant's model can answer.
#[derive(Debug, Clone)]
pub struct ModelReady {
    /// The model.
    pub model: ModelMetrics,
    /// Its version.
    pub version: Version,
    /// Whether it can answer now.
    pub ready: bool,
}

impl TenantMetrics {
    pub(super) fn new(id: Option<TenantId>, clock: Arc<dyn Clock>) -> TenantMetrics {
        TenantMetrics(Arc::new(TenantSeries {
            id,
            clock,
            host: Counter::default(),
            free_rows: Counter::default(),
            refusals: Refusals::new(),
            models: RwLock::new(BTreeMap::new()),
            unknown_model: ModelMetrics::new(None),
            gauges: Mutex::new(None),
        }))
    }

    /// Begins to count one request, now. It counts for the model `unknown` until [`PendingRequest::set_model`] is called.
    pub fn begin_request(&self) -> PendingRequest {
        PendingRequest::new(self.clone(), self.0.unknown_model.clone())
    }

    /// Adds measured host time: decoding, encoding, inflating.
    pub fn add_host_time(&self, time: Duration) {
        self.0.host.add_time(time);
    }

    /// Adds rows that rode in slots which a batch would have padded anyway.
    pub fn add_free_rows(&self, rows: u64) {
        self.0.free_rows.add(rows);
    }

    /// Says where this tenant's gauges are read: `read` is called at each scrape, on the thread that answers it, and must not
    /// wait. A later call replaces it; removing the tenant drops it.
    pub fn set_gauges(&self, read: impl Fn() -> TenantGauges + Send + Sync + 'static) {
        *self.0.gauges.lock() = Some(Arc::new(read));
    }

    pub(super) fn count_refusal(&self, refusal: &Refusal) {
        self.0.refusals.count(refusal);
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// The tenant's label.
    pub(super) fn label(&self) -> &str {
        self.0.id.as_ref().map_or(UNKNOWN, TenantId::as_str)
    }

    pub(super) fn series(&self) -> &TenantSeries {
        &self.0
    }
}

impl TenantSeries {
    /// The series of the model `name`, made if they are not there. A model that is called as the label for unknown ones
    /// shares their series, lest one series be rendered twice.
    pub(super) fn model(&self, name: &ModelName) -> ModelMetrics {
        if name.as_str() == UNKNOWN {
            return self.unknown_model.clone();
        }
        let mut models = self.models.write();
        models.entry(name.clone()).or_insert_with(|| ModelMetrics::new(Some(name.clone()))).clone()
    }

    pub(super) fn remove_model(&self, name: &ModelName) {
        self.models.write().remove(name);
    }

    /// The models to show: those configured, and `unknown` once it was asked for (for the unknown tenant: always).
    pub(super) fn models(&self) -> Vec<ModelMetrics> {
        let mut models: Vec<ModelMetrics> = self.models.read().values().cloned().collect();
        if self.id.is_none() || self.unknown_model.series().is_used() {
            models.push(self.unknown_model.clone());
        }
        models
    }

    /// The gauges now, with only the models that are registered here.
    pub(super) fn read_gauges(&self) -> Option<TenantGauges> {
        // Not under the lock: what is called may itself register or remove.
        let read = self.gauges.lock().clone()?;
        let mut gauges = read();
        let models = self.models.read();
        gauges.models.retain(|ready| {
            let registered = ready.model.name().and_then(|name| models.get(name));
            registered.is_some_and(|registered| registered.is_same_as(&ready.model))
        });
        Some(gauges)
    }

    /// Lets go of what may hold this tenant's state. What its handles still count is seen by nobody.
    pub(super) fn retire(&self) {
        self.models.write().clear();
        *self.gauges.lock() = None;
    }
}

impl fmt::Debug for TenantMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TenantMetrics").field(&self.label()).finish()
    }
}
