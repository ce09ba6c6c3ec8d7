//! What every part of one runtime shares: time, counters, memory, shards, the router, the loader. Made once at start; it
//! owns no threads and decides nothing.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use insula_core::{Clock, Error, Refusal, Result};
use insula_memory::HostBudget;
use insula_telemetry::metrics::Metrics;
use parking_lot::Mutex;

use crate::faults::Faults;
use crate::loader::Loader;
use crate::payload::QueuedJob;
use crate::plans::{PlanCache, Planner};
use crate::router::RouterHandle;
use crate::router::route_table::ShardIndex;
use crate::shard::Shard;
use crate::spawner::Spawner;
use crate::worker::unmixing::Unmixing;

/// A shard of this runtime.
pub type JobShard = Shard<QueuedJob>;

/// The shared parts of one runtime.
pub struct Services {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where everything is counted.
    pub metrics: Metrics,
    /// The host budget.
    pub budget: Arc<HostBudget>,
    /// Fair queues with their workers.
    pub shards: Vec<Arc<JobShard>>,
    /// Places models.
    pub router: RouterHandle,
    /// Loads models.
    pub loader: Loader,
    /// Has plans built that requests wait for.
    pub planner: Planner,
    /// The plans of models whose inputs vary.
    pub plan_cache: Arc<PlanCache>,
    /// Makes loops and starts actors.
    pub spawner: Spawner,
    /// Faults that tests arm.
    pub faults: Arc<Faults>,
    /// Where private models are kept.
    pub state: PathBuf,
    /// Who is kept out of mixed batches.
    pub unmixing: Mutex<Unmixing>,
    /// Whether requests are refused because the server stops.
    pub closed: AtomicBool,
}

impl Services {
    /// Refuses when the server has stopped taking requests.
    pub fn check_open(&self) -> Result<()> {
        if !self.closed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let retry_after = Duration::from_secs(1);
        let refusal = Refusal { limit: "draining", value: 0.0, used: 0.0, window: Duration::ZERO, retry_after };
        Err(Error::unavailable("the server is stopping: try another one", refusal))
    }

    /// Predicted device time that waits or runs on a shard, in ns.
    pub fn backlog(&self, shard: ShardIndex) -> u64 {
        self.shards.get(shard.0).map_or(u64::MAX, |shard| shard.backlog())
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}
