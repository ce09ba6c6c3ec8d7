//! A tenant's public handle and what it shares between its actor and everybody who serves it: snapshot, counters, domain.
//! The handle's methods are the single door; what crosses to the tenant's loop and what does not is their secret.

pub mod actor;
mod gauges;
pub mod life;
pub mod messages;
pub mod models;
mod queueing;
pub mod state;
mod submit;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::Addr;
use arc_swap::{ArcSwap, ArcSwapOption};
use insula_core::{Clock, ModelName, Quota, Result, TenantId};
use insula_memory::Domain;
use insula_store::ModelGrant;
use insula_telemetry::metrics::{PendingRequest, TenantMetrics};

use crate::admission::gcra::Gcra;
use crate::admission::permit::Usage;
use crate::fair_queue::TenantSlot;
use crate::faults::Faults;
use crate::model::ServedModel;
use crate::services::Services;
use crate::tenant::actor::TenantActor;
use crate::tenant::state::{LifeCycle, TenantSnapshot};

pub(crate) use queueing::fail;
pub use state::LifeCycle as TenantState;

/// What a tenant's actor and its callers share.
pub struct TenantCore {
    id: TenantId,
    slot: TenantSlot,
    snapshot: ArcSwap<TenantSnapshot>,
    usage: Arc<Usage>,
    rate: Gcra,
    domain: Arc<Domain>,
    address: ArcSwapOption<Addr<TenantActor>>,
    metrics: TenantMetrics,
    services: Arc<Services>,
    grants: BTreeMap<ModelName, ModelGrant>,
    /// Spreads requests over replicas.
    turn: AtomicU64,
}

impl TenantCore {
    /// The core of a tenant whose actor has not been started yet.
    pub(crate) fn new(
        id: TenantId,
        slot: TenantSlot,
        snapshot: TenantSnapshot,
        domain: Arc<Domain>,
        metrics: TenantMetrics,
        grants: BTreeMap<ModelName, ModelGrant>,
        services: Arc<Services>,
    ) -> TenantCore {
        TenantCore {
            id,
            slot,
            snapshot: ArcSwap::from_pointee(snapshot),
            usage: Arc::new(Usage::default()),
            rate: Gcra::default(),
            domain,
            address: ArcSwapOption::empty(),
            metrics,
            services,
            grants,
            turn: AtomicU64::new(0),
        }
    }

    /// Who it is.
    pub fn id(&self) -> &TenantId {
        &self.id
    }

    /// Its number in fair queues.
    pub fn slot(&self) -> TenantSlot {
        self.slot
    }

    /// What its actor published last.
    pub fn snapshot(&self) -> Arc<TenantSnapshot> {
        self.snapshot.load_full()
    }

    /// Puts `snapshot` in force. Only its actor, and whoever gives the actor up, call this.
    pub(crate) fn publish(&self, snapshot: TenantSnapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Sets where its actor is reached, or that there is none.
    pub(crate) fn set_address(&self, address: Option<Addr<TenantActor>>) {
        self.address.store(address.map(Arc::new));
    }

    pub(crate) fn address(&self) -> Option<Arc<Addr<TenantActor>>> {
        self.address.load_full()
    }

    /// Its memory.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Where it is counted.
    pub fn metrics(&self) -> &TenantMetrics {
        &self.metrics
    }

    /// The time.
    pub fn clock(&self) -> &dyn Clock {
        &*self.services.clock
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.services.faults
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// What its document says of its models, by the names it calls them.
    pub(crate) fn grants(&self) -> &BTreeMap<ModelName, ModelGrant> {
        &self.grants
    }

    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    pub(crate) fn rate(&self) -> &Gcra {
        &self.rate
    }

    fn next_turn(&self) -> u64 {
        // an odd multiplier spreads consecutive turns over all bits
        self.turn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl fmt::Debug for TenantCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantCore").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A tenant, as the server and embedders see it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TenantHandle {
    core: Arc<TenantCore>,
}

impl TenantHandle {
    pub(crate) fn new(core: Arc<TenantCore>) -> TenantHandle {
        TenantHandle { core }
    }

    pub(crate) fn core(&self) -> &Arc<TenantCore> {
        &self.core
    }

    /// Who it is.
    pub fn id(&self) -> &TenantId {
        self.core.id()
    }

    /// Where it stands in its life.
    pub fn state(&self) -> LifeCycle {
        self.core.snapshot.load().life
    }

    /// Its limits in force.
    pub fn quota(&self) -> Quota {
        self.core.snapshot.load().quota.clone()
    }

    /// Requests admitted and not yet answered.
    pub fn inflight(&self) -> u32 {
        self.core.usage.inflight()
    }

    /// Requests that hold a place in fair queues.
    pub fn queued(&self) -> u32 {
        self.core.usage.queued()
    }

    /// Its memory's figures.
    pub fn memory(&self) -> insula_memory::DomainUsage {
        self.core.domain.usage()
    }

    /// Counts one request for `model`; names that are not the tenant's count as `unknown`.
    pub fn tally(&self, model: &str) -> PendingRequest {
        let mut pending = self.core.metrics.begin_request();
        if let Some(versions) = self.core.snapshot.load().models.get(model) {
            pending.set_model(&versions.newest().metrics);
        }
        pending
    }

    /// The version that answers for `model`: the highest ready one, or exactly `version`.
    pub fn model(&self, model: &str, version: Option<&str>) -> Result<Arc<ServedModel>> {
        self.core.snapshot.load().find(model, version).cloned()
    }
}
