//! How workers rest and are woken. A wake-up that comes before its worker rests is kept, so none is lost.

use std::time::Duration;

use super::idle::WorkerIndex;
use super::sync::Token;
use super::{Shard, ShardEntry};

/// The resting place of one worker.
pub trait Parker {
    /// Rests until woken or until `timeout` is over. Returns at once if it was woken since it last rested.
    fn park(&self, timeout: Option<Duration>);

    /// Wakes the worker that rests here, or the next time it is about to.
    fn unpark(&self);
}

/// Blocks the worker's thread.
#[derive(Debug, Default)]
pub struct ThreadParker {
    token: Token,
}

impl Parker for ThreadParker {
    fn park(&self, timeout: Option<Duration>) {
        self.token.wait(timeout);
    }

    fn unpark(&self) {
        self.token.raise();
    }
}

impl<E: ShardEntry, K: Parker> Shard<E, K> {
    /// Lets `worker` rest until there may be work for it, it is [woken](Shard::wake), or `timeout` is over. It has to
    /// [`take`](Shard::take) again before it rests again or leaves; to leave without, [`retire`](Shard::retire).
    pub fn park(&self, worker: WorkerIndex, timeout: Option<Duration>) {
        let Some(parker) = self.parkers.get(worker.0) else { return };
        self.idle.announce(worker);
        if !self.has_work() {
            parker.park(timeout);
        }
        self.idle.retract(worker);
    }

    /// Wakes `worker`, resting or about to rest, for something other than a batch: a message, the end.
    pub fn wake(&self, worker: WorkerIndex) {
        if let Some(parker) = self.parkers.get(worker.0) {
            parker.unpark();
        }
    }

    /// `worker` leaves without taking again: passes on a wake-up that may have been meant for it.
    pub fn retire(&self, worker: WorkerIndex) {
        self.idle.retract(worker);
        if self.has_work() {
            self.wake_one();
        }
    }

    fn has_work(&self) -> bool {
        !self.intake.is_empty() || self.published.is_ready()
    }

    /// Wakes one resting worker, after work was made visible.
    pub(super) fn wake_one(&self) {
        if let Some(worker) = self.idle.claim_one() {
            self.wake(worker);
        }
    }
}
