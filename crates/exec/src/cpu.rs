//! The CPU as a device: plans become calls of the kernels, weights are packed once for each content and shared by all
//! buckets, versions and tenants that have it. A run uses the calling thread, the device's compute threads for its large steps, and
//! the memory it is handed.

mod compute_threads;
mod folder;
mod gather;
mod lower;
mod plan;
mod shared_tiles;
mod step;
mod steps;
mod tensor;
mod thread_groups;
mod weights;

use std::sync::Arc;

use insula_core::{Error, Result};
use insula_kernels::Isa;
use insula_model::{ConstantFolder, LogicalPlan, Model, Op};

use crate::device::{Device, DeviceKind, LoweredPlan, Weights};
use crate::topology::Topology;
use compute_threads::ComputeThreads;
use folder::CpuFolder;
use lower::lower;
use tensor::number;
use thread_groups::ThreadGroups;
use weights::{CpuWeights, WeightCache};

/// The machine's processors. One is enough for a process: its weight cache is what tenants share.
#[derive(Debug)]
pub struct CpuDevice {
    isa: Isa,
    folder: CpuFolder,
    cache: WeightCache,
    threads: Arc<ThreadGroups>,
}

impl CpuDevice {
    /// The CPU with the best instruction set that it has. Runs use the thread that calls them and no other.
    pub fn new() -> CpuDevice {
        CpuDevice::using(ThreadGroups::of(ComputeThreads::alone()))
    }

    /// The same, whose runs share their large steps among `count` threads, the calling one among them; the others may run on
    /// `cpus` alone, or anywhere if there are none. One run at a time has them, others meanwhile compute alone. Bits do not
    /// depend on `count`. Fails when the system gives no more threads.
    pub fn with_threads(count: usize, cpus: &[usize]) -> Result<CpuDevice> {
        Ok(CpuDevice::using(ThreadGroups::of(ComputeThreads::start(count, cpus)?)))
    }

    /// The same with compute threads for `workers` workers (`None`: one a NUMA node) on `topology`: a run uses those of the node
    /// that it is called on.
    pub fn for_workers(topology: &Topology, workers: Option<usize>) -> Result<CpuDevice> {
        Ok(CpuDevice::using(ThreadGroups::of_topology(topology, workers)?))
    }

    fn using(threads: ThreadGroups) -> CpuDevice {
        let isa = Isa::detect();
        CpuDevice { isa, folder: CpuFolder::new(isa), cache: WeightCache::default(), threads: Arc::new(threads) }
    }

    /// The instruction set that kernels run with, e.g. `avx2+fma+f16c`.
    pub fn instruction_set(&self) -> &'static str {
        self.isa.name()
    }
}

impl Default for CpuDevice {
    fn default() -> Self {
        CpuDevice::new()
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        "cpu"
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn supports(&self, op: &Op) -> bool {
        match op {
            Op::Cast { to } => number(*to).is_some(),
            Op::Conv(_)
            | Op::MaxPool(_)
            | Op::AveragePool(_)
            | Op::ConvTranspose(_)
            | Op::DeformConv(_)
            | Op::LpPool(_)
            | Op::MaxPositions(_)
            | Op::Recurrent(_)
            | Op::MatMul
            | Op::Binary(_)
            | Op::Activation(_)
            | Op::Elementwise(_)
            | Op::Softmax { .. }
            | Op::Normalize { .. }
            | Op::Reduce(_)
            | Op::ArgExtreme(_)
            | Op::Cumulative(_)
            | Op::Transpose { .. }
            | Op::Move(_)
            | Op::Sample(_) => true,
        }
    }

    fn load_weights(&self, model: &Model) -> Result<Arc<dyn Weights>> {
        Ok(Arc::new(CpuWeights::pack(model.constants(), &model.logical_plan(1)?, &self.cache)?))
    }

    fn lower(&self, plan: &LogicalPlan, weights: &Arc<dyn Weights>) -> Result<Arc<dyn LoweredPlan>> {
        let weights = Arc::clone(weights) as Arc<dyn std::any::Any + Send + Sync>;
        let weights = weights.downcast::<CpuWeights>().map_err(|_| {
            Error::internal("the plan could not be lowered", "the weights were loaded by another device")
        })?;
        Ok(Arc::new(lower(self.isa, &self.threads, plan, weights)?))
    }

    fn folder(&self) -> &dyn ConstantFolder {
        &self.folder
    }

    fn weight_bytes(&self) -> usize {
        self.cache.bytes()
    }
}
