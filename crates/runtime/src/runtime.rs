//! A running house: the actix System on its own named thread, the router, the workers, the tenants, and the order in which
//! they stop. Several can live in one process. The server and embedders start one; it knows no protocol.

mod tenants;
mod threads;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use insula_core::Result;
use insula_memory::{HostBudget, Reaper};
use parking_lot::Mutex;

use crate::directory::Directory;
use crate::faults::Faults;
use crate::loader::LoaderThread;
use crate::plans::{PlanBuilder, PlanCache, PlannerThread};
use crate::runtime::threads::{RouterHome, SystemThread};
use crate::services::{JobShard, Services};
use crate::settings::RuntimeSettings;
use crate::shard::ThreadParker;
use crate::spawner::SpawnerThread;
use crate::tenant::life::TenantHome;
use crate::worker::WorkerHome;

pub use tenants::{ModelReport, TenantReport};

/// Whether a runtime can serve, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether it can.
    pub ready: bool,
    /// What is missing, one sentence each.
    pub reasons: Vec<String>,
}

/// How a stop went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReport {
    /// Requests that had not ended within the time and were answered 503.
    pub unfinished: usize,
}

/// A running house.
pub struct Runtime {
    services: Arc<Services>,
    directory: Arc<Directory>,
    draining: AtomicBool,
    slots: AtomicU32,
    settings: RuntimeSettings,
    tenants: Mutex<Vec<TenantHome>>,
    workers: Vec<WorkerHome>,
    router: RouterHome,
    loader: LoaderThread,
    planner: PlannerThread,
    reaper: Reaper,
    spawner: SpawnerThread,
    system: SystemThread,
}

impl Runtime {
    /// Starts the System thread, the spawner, the router, the loader and the workers. Tenants are added afterwards.
    pub fn start(settings: RuntimeSettings) -> Result<Runtime> {
        let system = SystemThread::start()?;
        let spawner = SpawnerThread::start(system.system())?;
        let faults = Arc::new(Faults::default());
        let budget = HostBudget::new(settings.memory);
        let shards = make_shards(&settings)?;
        let router = RouterHome::open(spawner.spawner(), shards.len(), faults.clone(), &settings)?;
        let builder = Arc::new(PlanBuilder::new(settings.device.clone(), budget.clone()));
        let plan_cache = Arc::new(PlanCache::new(settings.plan_cache));
        let loader = LoaderThread::start(&settings, builder, plan_cache.clone())?;
        let planner = PlannerThread::start(settings.clock.clone())?;
        let services = Arc::new(Services {
            clock: settings.clock.clone(),
            metrics: settings.metrics.clone(),
            budget: budget.clone(),
            shards,
            router: router.handle(),
            loader: loader.loader(),
            planner: planner.planner(),
            plan_cache,
            spawner: spawner.spawner(),
            faults,
            state: settings.state.clone(),
            unmixing: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let workers = crate::worker::open_all(&services, &settings)?;
        let directory = Arc::new(Directory::new(settings.metrics.clone()));
        let (draining, slots, tenants) = (AtomicBool::new(false), AtomicU32::new(0), Mutex::new(Vec::new()));
        let reaper = Reaper::start()?;
        Ok(Runtime {
            services,
            directory,
            draining,
            slots,
            settings,
            tenants,
            workers,
            router,
            loader,
            planner,
            reaper,
            spawner,
            system,
        })
    }

    /// Keys and tenants.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.clone()
    }

    /// The faults that tests arm.
    #[cfg(feature = "fault-injection")]
    pub fn faults(&self) -> &Faults {
        &self.services.faults
    }

    /// What of the host budget is in use.
    pub fn memory(&self) -> insula_memory::BudgetUsage {
        self.services.budget.usage()
    }

    /// How many shape classes have plans that are kept, and their bytes.
    pub fn plan_cache(&self) -> (usize, u64) {
        (self.services.plan_cache.classes(), self.services.plan_cache.bytes())
    }

    /// Whether it can serve now.
    pub fn health(&self) -> Health {
        let mut reasons = Vec::new();
        if self.draining.load(Ordering::SeqCst) {
            reasons.push("the server is draining".to_string());
        }
        for worker in self.workers.iter().filter(|worker| !worker.is_up()) {
            reasons.push(format!("worker {} is down", worker.name()));
        }
        Health { ready: reasons.is_empty(), reasons }
    }

    /// Readiness goes down; requests are still served.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// From now on new requests are refused with 503; admitted ones end normally.
    pub fn refuse_new(&self) {
        self.drain();
        self.services.closed.store(true, Ordering::SeqCst);
    }

    /// Requests admitted and not yet answered, over all tenants.
    pub fn inflight(&self) -> usize {
        self.directory.tenants().iter().map(|tenant| tenant.inflight() as usize).sum()
    }

    /// Stops everything in order, waiting for admitted requests up to `timeout`: queues empty, workers joined, tenants
    /// stopped and their domains reaped, the System ended and its thread joined.
    pub fn stop(self, timeout: Duration) -> StopReport {
        self.refuse_new();
        let unfinished = self.wait_for_requests(timeout);
        for worker in self.workers {
            worker.close();
        }
        let mut loader = self.loader;
        loader.stop();
        let mut planner = self.planner;
        planner.stop();
        self.directory.clear();
        for tenant in self.tenants.into_inner() {
            tenant.close();
        }
        self.router.close();
        let mut spawner = self.spawner;
        spawner.stop();
        drop(self.services);
        self.reaper.stop();
        self.system.stop();
        StopReport { unfinished }
    }

    fn wait_for_requests(&self, timeout: Duration) -> usize {
        let started = self.services.clock.now();
        loop {
            let inflight = self.inflight();
            if inflight == 0 || self.services.clock.now().since(started) >= timeout {
                return inflight;
            }
            std::thread::sleep(STOP_POLL);
        }
    }
}

/// How often a stop looks whether the last request has ended.
const STOP_POLL: Duration = Duration::from_millis(2);

/// One shard for each NUMA node that has processors, with the workers that [`crate::worker::open_all`] opens on it.
fn make_shards(settings: &RuntimeSettings) -> Result<Vec<Arc<JobShard>>> {
    let per_shard = settings.workers_per_shard();
    let shard = |workers: &usize| {
        let parkers = (0..*workers).map(|_| ThreadParker::default()).collect();
        Ok(Arc::new(JobShard::new(settings.fair_queue(), parkers)?))
    };
    per_shard.iter().map(shard).collect()
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}
