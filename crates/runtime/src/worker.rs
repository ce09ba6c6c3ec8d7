//! A worker's home: its pinned loop, its actor, and how it comes back after a panic. The runtime opens workers at start and
//! closes them at stop; requests reach them only through their shard's fair queue.

pub mod actor;
pub mod batch;
pub mod outputs;
pub mod turn;
pub mod unmixing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Actor;
use insula_core::Result;
use insula_telemetry::metrics::{Actor as ActorKind, WorkerMetrics};

use crate::services::{JobShard, Services};
use crate::settings::RuntimeSettings;
use crate::shard::WorkerIndex;
use crate::spawner::{LoopKind, OwnLoop};
use crate::supervision::DownNotice;
use crate::worker::actor::WorkerActor;

/// A worker with its loop.
#[derive(Debug)]
pub struct WorkerHome {
    builder: Arc<WorkerBuilder>,
    own_loop: OwnLoop,
}

/// Where a worker stands.
#[derive(Debug)]
struct WorkerPlace {
    shard: Arc<JobShard>,
    index: WorkerIndex,
    cpus: Vec<usize>,
    node: Option<u32>,
}

/// What a worker's actor is built from, again and again.
#[derive(Debug)]
pub struct WorkerBuilder {
    name: String,
    place: WorkerPlace,
    services: Arc<Services>,
    metrics: WorkerMetrics,
    arbiter: actix_rt::ArbiterHandle,
    stopping: Arc<AtomicBool>,
    up: AtomicBool,
}

/// Opens the workers that `settings` ask for: one a NUMA node with processors, or as many as were said, over the nodes in turn.
pub fn open_all(services: &Arc<Services>, settings: &RuntimeSettings) -> Result<Vec<WorkerHome>> {
    let nodes: Vec<_> = settings.topology.compute_nodes().collect();
    let mut homes = Vec::new();
    for (position, (shard, workers)) in services.shards.iter().zip(settings.workers_per_shard()).enumerate() {
        let node = nodes.get(position);
        for index in 0..workers {
            let cpus = node.map(|node| node.cpus.clone()).unwrap_or_default();
            let place =
                WorkerPlace { shard: shard.clone(), index: WorkerIndex(index), cpus, node: node.map(|node| node.id) };
            homes.push(WorkerHome::open(homes.len(), place, services)?);
        }
    }
    Ok(homes)
}

impl WorkerHome {
    fn open(number: usize, place: WorkerPlace, services: &Arc<Services>) -> Result<WorkerHome> {
        let own_loop = services.spawner.arbiter(LoopKind::Worker)?;
        let builder = Arc::new(WorkerBuilder {
            metrics: services.metrics.register_worker(number),
            name: format!("worker-{number}"),
            place,
            services: services.clone(),
            arbiter: own_loop.handle(),
            stopping: Arc::new(AtomicBool::new(false)),
            up: AtomicBool::new(false),
        });
        builder.build();
        Ok(WorkerHome { builder, own_loop })
    }

    /// Its name in metrics and messages.
    pub fn name(&self) -> &str {
        &self.builder.name
    }

    /// Whether its actor is alive.
    pub fn is_up(&self) -> bool {
        self.builder.up.load(Ordering::SeqCst)
    }

    /// Lets it finish what is queued, then ends it and its loop.
    pub fn close(self) {
        self.builder.stopping.store(true, Ordering::SeqCst);
        self.builder.place.shard.wake(self.builder.place.index);
        self.own_loop.stop();
    }
}

impl WorkerBuilder {
    fn build(self: &Arc<Self>) {
        let builder = self.clone();
        let notice = DownNotice::new(self.stopping.clone(), move || builder.order_rebuild());
        let parts = self.clone();
        self.up.store(true, Ordering::SeqCst);
        self.metrics.set_up(true);
        WorkerActor::start_in_arbiter(&self.arbiter, move |_| WorkerActor::new(parts, notice));
    }

    /// Called by the dying worker on its own loop: leaves an order and returns. What is queued waits on the shard.
    fn order_rebuild(self: Arc<Self>) {
        // a wake-up that was meant for this worker goes to another one, or waits for the next
        self.place.shard.retire(self.place.index);
        self.up.store(false, Ordering::SeqCst);
        self.metrics.set_up(false);
        self.services.metrics.count_rebuild(ActorKind::Worker);
        let services = self.services.clone();
        let order = move || {
            tracing::warn!(worker = self.name, "a worker panicked and is built again");
            self.build();
        };
        if let Err(error) = services.spawner.order(order) {
            tracing::error!(?error, "a worker could not be built again");
        }
    }

    /// Its shard.
    pub fn shard(&self) -> &Arc<JobShard> {
        &self.place.shard
    }

    /// Its number on its shard.
    pub fn index(&self) -> WorkerIndex {
        self.place.index
    }

    /// What all parts of the runtime share.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Pins the calling thread to the worker's processors. What cannot be pinned runs anywhere, with a warning.
    pub fn settle_on_its_processors(&self) {
        if self.place.cpus.is_empty() {
            return;
        }
        if let Err(error) = insula_exec::topology::pin_current_thread(&self.place.cpus) {
            tracing::warn!(worker = self.name, %error, "a worker could not be pinned and runs on any processor");
        }
    }

    /// The NUMA node of its memory.
    pub fn node(&self) -> Option<u32> {
        self.place.node
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is to end.
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}
