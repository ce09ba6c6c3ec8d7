//! The series that belong to the whole server: workers, rebuilt actors, configuration, and what telemetry itself lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::counter::Counter;

/// The kinds of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A tenant's.
    Tenant,
    /// The router.
    Router,
    /// A worker.
    Worker,
}

impl Actor {
    /// Every kind.
    pub const ALL: [Actor; 3] = [Actor::Tenant, Actor::Router, Actor::Worker];

    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Actor::Tenant => "tenant",
            Actor::Router => "router",
            Actor::Worker => "worker",
        }
    }
}

/// The series of one worker. Clones share them.
#[derive(Debug, Clone)]
pub struct WorkerMetrics(Arc<AtomicBool>);

impl WorkerMetrics {
    /// Says whether the worker takes batches.
    pub fn set_up(&self, up: bool) {
        self.0.store(up, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct ServerSeries {
    /// The version of insula.
    version: &'static str,
    workers: Mutex<BTreeMap<usize, WorkerMetrics>>,
    rebuilds: [Counter; Actor::ALL.len()],
    pub(super) config_ok: AtomicBool,
    pub(crate) access_log_written: Counter,
    pub(crate) access_log_dropped: Counter,
    pub(crate) spans_exported: Counter,
    pub(crate) spans_lost: Counter,
}

impl ServerSeries {
    pub(super) fn new(version: &'static str) -> ServerSeries {
        ServerSeries {
            version,
            workers: Mutex::new(BTreeMap::new()),
            rebuilds: std::array::from_fn(|_| Counter::default()),
            config_ok: AtomicBool::new(true),
            access_log_written: Counter::default(),
            access_log_dropped: Counter::default(),
            spans_exported: Counter::default(),
            spans_lost: Counter::default(),
        }
    }

    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    pub(super) fn worker(&self, number: usize) -> WorkerMetrics {
        let mut workers = self.workers.lock();
        workers.entry(number).or_insert_with(|| WorkerMetrics(Arc::new(AtomicBool::new(false)))).clone()
    }

    pub(super) fn rebuilds(&self, actor: Actor) -> &Counter {
        let [tenant, router, worker] = &self.rebuilds;
        match actor {
            Actor::Tenant => tenant,
            Actor::Router => router,
            Actor::Worker => worker,
        }
    }

    /// Every worker's number and whether it is up.
    pub(super) fn workers(&self) -> Vec<(String, bool)> {
        let workers = self.workers.lock();
        workers.iter().map(|(number, worker)| (number.to_string(), worker.0.load(Ordering::Relaxed))).collect()
    }
}
