//! What a runtime is started with. Plain values with defaults; the server fills them from its configuration. Nothing
//! here reads a file or the environment.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use insula_core::{Clock, Result, SystemClock};
use insula_exec::topology::Topology;
use insula_exec::{CpuDevice, Device, DeviceKind};
use insula_memory::Scrub;
use insula_telemetry::metrics::Metrics;

use crate::fair_queue::{FairQueueSettings, constants};

/// Settings of one [`crate::runtime::Runtime`].
#[derive(Debug, Clone)]
pub struct RuntimeSettings {
    /// The shared catalog of models.
    pub models: Option<PathBuf>,
    /// Where tenants' private models are kept.
    pub state: PathBuf,
    /// Bytes that domains, weights, plans and arenas may take together.
    pub memory: u64,
    /// Bytes of plans that are kept for models whose inputs vary, over all tenants.
    pub plan_cache: u64,
    /// Workers in all; `None` for one a NUMA node.
    pub workers: Option<usize>,
    /// The machine as the router sees it.
    pub topology: Topology,
    /// The device that runs plans.
    pub device: Arc<dyn Device>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where everything is counted.
    pub metrics: Metrics,
    /// When freed memory is cleared.
    pub scrub: Scrub,
    /// How long a batch may be held back for more rows while the device is busy with nothing else; zero never waits.
    pub max_queue_delay: Duration,
}

impl RuntimeSettings {
    /// Settings for `workers` workers (`None`: one a NUMA node) on the CPU of this machine, or of the one that `INSULA_TOPOLOGY`
    /// describes, with compute threads beside them. Fails when that is wrong.
    pub fn for_machine(state: PathBuf, workers: Option<usize>) -> Result<RuntimeSettings> {
        let topology = Topology::detect()?;
        let device = CpuDevice::for_workers(&topology, workers)?;
        Ok(RuntimeSettings { workers, ..RuntimeSettings::new(Arc::new(device), topology, state) })
    }

    /// Settings for `device` on `topology`, everything else at its default.
    pub fn new(device: Arc<dyn Device>, topology: Topology, state: PathBuf) -> RuntimeSettings {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        RuntimeSettings {
            models: None,
            state,
            memory: 1 << 30,
            plan_cache: 64 << 20,
            workers: None,
            topology,
            device,
            metrics: Metrics::new(env!("CARGO_PKG_VERSION"), clock.clone()),
            clock,
            scrub: Scrub::Lazy,
            max_queue_delay: Duration::ZERO,
        }
    }

    /// How many workers each shard has: one a NUMA node with processors, or as many as were said, dealt out in turn. A shard
    /// without a worker is none.
    pub fn workers_per_shard(&self) -> Vec<usize> {
        let nodes = self.topology.compute_nodes().count().max(1);
        let workers = self.workers.unwrap_or(nodes).max(1);
        let shards = nodes.min(workers);
        (0..shards).map(|shard| workers / shards + usize::from(shard < workers % shards)).collect()
    }

    /// How each shard's fair queue is set up.
    pub fn fair_queue(&self) -> FairQueueSettings {
        let slice = match self.device.kind() {
            DeviceKind::Cpu | DeviceKind::Synthetic => constants::CPU_SLICE,
            DeviceKind::Cuda => constants::GPU_SLICE,
        };
        FairQueueSettings { slice, max_queue_delay: self.max_queue_delay }
    }
}
