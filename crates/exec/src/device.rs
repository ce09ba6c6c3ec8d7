//! What a device is to the rest of the server: something that packs a model's weights, lowers its plans and runs them. The
//! CPU is one; others can be written outside this crate.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use insula_core::Result;
use insula_model::{ConstantFolder, LogicalPlan, Model, Op};

use crate::batch::{BatchIo, StopPoint};
use crate::error::ExecError;

/// What sort of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The machine's own processors.
    Cpu,
    /// A GPU of NVIDIA's.
    Cuda,
    /// One that computes nothing and takes a stated time, for tests and benchmarks.
    Synthetic,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Synthetic => "synthetic",
        })
    }
}

/// A device that models run on.
pub trait Device: Send + Sync + Debug {
    /// Its name for messages and metrics, e.g. `cpu`.
    fn name(&self) -> &str;

    /// What sort it is.
    fn kind(&self) -> DeviceKind;

    /// Whether it can run `op`.
    fn supports(&self, op: &Op) -> bool;

    /// The model's constants as its kernels want them, shared with whoever has loaded the same content before. Fails when the
    /// model has an operation that the device does not support, or when there is no memory.
    fn load_weights(&self, model: &Model) -> Result<Arc<dyn Weights>>;

    /// Chooses kernels for `plan`, with `weights` loaded by this device from the same model. The choice depends on each
    /// layer, never on the bucket.
    fn lower(&self, plan: &LogicalPlan, weights: &Arc<dyn Weights>) -> Result<Arc<dyn LoweredPlan>>;

    /// Computes at load what depends on constants alone.
    fn folder(&self) -> &dyn ConstantFolder;

    /// Bytes of all weights that are loaded, each counted once however many share it.
    fn weight_bytes(&self) -> usize;
}

/// A model's constants on a device. Dropped with the last plan that uses them.
pub trait Weights: Any + Send + Sync + Debug {
    /// Their bytes.
    fn bytes(&self) -> usize;
}

/// A plan with its kernels chosen, for batches of up to [`LoweredPlan::bucket`] rows. It keeps no state between runs: a batch
/// can be run again, also after a panic, and several threads can run the same plan, each in its own arena.
pub trait LoweredPlan: Send + Sync + Debug {
    /// The most rows of a batch.
    fn bucket(&self) -> usize;

    /// Bytes of arena that a run needs.
    fn arena_bytes(&self) -> usize;

    /// Bytes that the plan itself takes, without weights.
    fn memory_bytes(&self) -> usize;

    /// Runs `batch` in `arena`, which has at least [`LoweredPlan::arena_bytes`] bytes of any content, aligned to 64. Writes every
    /// output that is wanted, each entry's into its own slices, or fails and leaves them undefined. Inputs are only read.
    fn run(&self, arena: &mut [u8], batch: &mut BatchIo<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError>;

    /// Runs `batch` as [`LoweredPlan::run`] does and notes in `times` how long each step of the logical plan took, in its order.
    /// A device that cannot tell leaves `times` empty.
    fn run_timed(
        &self,
        arena: &mut [u8],
        batch: &mut BatchIo<'_>,
        stop: &mut dyn StopPoint,
        times: &mut Vec<Duration>,
    ) -> Result<(), ExecError> {
        times.clear();
        self.run(arena, batch, stop)
    }
}
