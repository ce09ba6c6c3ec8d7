//! Which workers rest, as one word: whoever makes work visible claims the bit of one resting worker and wakes it, so a worker
//! is woken once and pushes in a row wake different ones.

use crate::shard::sync::{AtomicU64, Ordering, fence};

/// The most workers a shard can have.
pub const MAX_WORKERS: usize = u64::BITS as usize;

/// A worker's number on its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerIndex(pub usize);

impl WorkerIndex {
    fn bit(self) -> u64 {
        u32::try_from(self.0).ok().and_then(|index| 1u64.checked_shl(index)).unwrap_or(0)
    }
}

/// The resting workers of a shard.
#[derive(Debug)]
pub(super) struct IdleWorkers {
    resting: AtomicU64,
}

impl Default for IdleWorkers {
    fn default() -> Self {
        IdleWorkers { resting: AtomicU64::new(0) }
    }
}

impl IdleWorkers {
    /// Says that `worker` is about to rest. What it looks at afterwards cannot be older than what a waker, who does not see
    /// it resting, has made visible.
    pub(super) fn announce(&self, worker: WorkerIndex) {
        self.resting.fetch_or(worker.bit(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that `worker` no longer rests.
    pub(super) fn retract(&self, worker: WorkerIndex) {
        self.resting.fetch_and(!worker.bit(), Ordering::Relaxed);
    }

    /// Claims a resting worker to be woken, after work was made visible.
    pub(super) fn claim_one(&self) -> Option<WorkerIndex> {
        fence(Ordering::SeqCst);
        let mut resting = self.resting.load(Ordering::Relaxed);
        while resting != 0 {
            let worker = WorkerIndex(resting.trailing_zeros() as usize);
            let before = self.resting.fetch_and(!worker.bit(), Ordering::Relaxed);
            if before & worker.bit() != 0 {
                return Some(worker);
            }
            resting = before;
        }
        None
    }
}
