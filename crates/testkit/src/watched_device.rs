//! A device under a test's control: the CPU with a hook before each run, which can count, sleep, wait or panic. With a sleep
//! it is the synthetic device: it takes a stated time and uses no processor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use insula_core::Result;
use insula_exec::{BatchIo, CpuDevice, Device, DeviceKind, ExecError, LoweredPlan, StopPoint, Weights};
use insula_model::{ConstantFolder, LogicalPlan, Model, Op};

type Hook = dyn Fn(&BatchIo<'_>, &mut dyn StopPoint) -> Result<(), ExecError> + Send + Sync;

/// The CPU with a hook before each run.
#[derive(Clone)]
pub struct WatchedDevice {
    cpu: Arc<CpuDevice>,
    hook: Arc<Hook>,
}

impl WatchedDevice {
    /// Calls `hook` before each run, on the worker's thread.
    pub fn new(hook: impl Fn(&BatchIo<'_>) + Send + Sync + 'static) -> WatchedDevice {
        let hook = move |batch: &BatchIo<'_>, _: &mut dyn StopPoint| {
            hook(batch);
            Ok(())
        };
        WatchedDevice { cpu: Arc::new(CpuDevice::new()), hook: Arc::new(hook) }
    }

    /// Takes `time` for each run, in steps of 1 ms between which it can be stopped.
    pub fn synthetic(time: impl Fn(usize) -> Duration + Send + Sync + 'static) -> WatchedDevice {
        let hook = move |batch: &BatchIo<'_>, stop: &mut dyn StopPoint| {
            let mut left = time(batch.rows());
            while !left.is_zero() {
                let step = left.min(Duration::from_millis(1));
                std::thread::sleep(step);
                left -= step;
                if stop.should_stop() {
                    return Err(ExecError::Stopped);
                }
            }
            Ok(())
        };
        WatchedDevice { cpu: Arc::new(CpuDevice::new()), hook: Arc::new(hook) }
    }

    /// Panics in each run of a batch in which some FP32 input holds `poison`.
    pub fn poisoned_by(poison: f32) -> WatchedDevice {
        let pattern = poison.to_le_bytes();
        WatchedDevice::new(move |batch| {
            let holds = |input: &&[u8]| input.chunks_exact(4).any(|word| word == pattern);
            let poisoned = batch.entries.iter().any(|entry| entry.inputs.iter().any(holds));
            assert!(!poisoned, "a kernel met the poisoned value");
        })
    }
}

impl fmt::Debug for WatchedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchedDevice")
    }
}

impl Device for WatchedDevice {
    fn name(&self) -> &str {
        "watched"
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Synthetic
    }

    fn supports(&self, op: &Op) -> bool {
        self.cpu.supports(op)
    }

    fn load_weights(&self, model: &Model) -> Result<Arc<dyn Weights>> {
        self.cpu.load_weights(model)
    }

    fn lower(&self, plan: &LogicalPlan, weights: &Arc<dyn Weights>) -> Result<Arc<dyn LoweredPlan>> {
        Ok(Arc::new(WatchedPlan { plan: self.cpu.lower(plan, weights)?, hook: self.hook.clone() }))
    }

    fn folder(&self) -> &dyn ConstantFolder {
        self.cpu.folder()
    }

    fn weight_bytes(&self) -> usize {
        self.cpu.weight_bytes()
    }
}

struct WatchedPlan {
    plan: Arc<dyn LoweredPlan>,
    hook: Arc<Hook>,
}

impl fmt::Debug for WatchedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchedPlan({:?})", self.plan)
    }
}

impl LoweredPlan for WatchedPlan {
    fn bucket(&self) -> usize {
        self.plan.bucket()
    }

    fn arena_bytes(&self) -> usize {
        self.plan.arena_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.plan.memory_bytes()
    }

    fn run(&self, arena: &mut [u8], batch: &mut BatchIo<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        (self.hook)(batch, stop)?;
        self.plan.run(arena, batch, stop)
    }
}
