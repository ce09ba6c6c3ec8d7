//! A shard: one device with its fair queue and the workers that run it. Requests push entries from any thread without waiting;
//! workers take batches, complete them and park when there is nothing to do. No wake-up travels by mailbox.
//!
//! What is pushed goes to a lock-free intake; whoever takes the scheduler's lock drains it into the fair queue. A push cannot
//! fail: the places that entries hold in their tenants' quotas bound it. (The intake spins for a push that has begun and is
//! not finished; a list whose nodes lie in the jobs would not, but needs unsafe code.)
//!
//! Nothing of a tenant's is dropped, answered or run under the lock, save the claim. A panic there fails the entry in hand.

mod control;
mod idle;
mod park;
mod published;
mod scheduler;
pub mod sync;

use std::fmt;

use insula_core::{Error, Nanos, Result};
use smallvec::SmallVec;

use crate::fair_queue::{Batch, BatchTicket, DeviceShare, Entry, FairQueueSettings, Settlement};
use idle::IdleWorkers;
use published::Published;
use scheduler::Scheduler;
use sync::{Intake, Mutex};

pub use idle::{MAX_WORKERS, WorkerIndex};
pub use park::{Parker, ThreadParker};
pub use published::ShardObservation;

/// What can be scheduled.
pub trait ShardEntry: Sized {
    /// What a worker gets of it.
    type Claimed;

    /// Takes it for a batch, or gives it back if it was withdrawn or its time is over: it then leaves the shard. Called under
    /// the scheduler's lock, so it must be short and must not drop what is costly to drop.
    fn claim(self, now: Nanos) -> std::result::Result<Self::Claimed, Self>;

    /// It will never be dispatched: answers its caller. Called outside of the lock.
    fn fail(self, fault: SchedulerFault);
}

/// Why an entry will not be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerFault {
    /// The scheduler panicked while working on this entry.
    Struck,
    /// The scheduler panicked twice within a second and started over empty.
    StartedOver,
}

/// What [`Shard::take`] found.
#[derive(Debug)]
pub enum Taken<C> {
    /// Run this, then [`complete`](Shard::complete) it.
    Batch(Batch<C>),
    /// Nothing may run yet: park, until then at most.
    HeldUntil(Nanos),
    /// Nothing waits: park.
    Nothing,
}

/// One device's queue and its workers' resting place.
pub struct Shard<E, K = ThreadParker> {
    intake: Intake<Entry<E>>,
    scheduler: Mutex<Scheduler<E>>,
    idle: IdleWorkers,
    parkers: Box<[K]>,
    published: Published,
}

impl<E: ShardEntry, K: Parker> Shard<E, K> {
    /// An empty shard whose worker number i rests with `parkers[i]`.
    pub fn new(settings: FairQueueSettings, parkers: Vec<K>) -> Result<Self> {
        if !(1..=MAX_WORKERS).contains(&parkers.len()) {
            let found = parkers.len();
            return Err(Error::invalid(format!(
                "a shard has 1 to {MAX_WORKERS} workers, not {found}: change `workers`"
            )));
        }
        Ok(Shard {
            intake: Intake::default(),
            scheduler: Mutex::new(Scheduler::new(settings)),
            idle: IdleWorkers::default(),
            parkers: parkers.into(),
            published: Published::default(),
        })
    }

    /// Adds an entry and wakes an idle worker if there is one. From any thread; never waits for the scheduler.
    pub fn push(&self, entry: Entry<E>) {
        self.intake.push(entry);
        self.wake_one();
    }

    /// Forms the next batch. Called by a worker that is about to be free.
    pub fn take(&self, now: Nanos) -> Taken<E::Claimed> {
        loop {
            let mut failed = Vec::new();
            let (formed, ready) = {
                let mut scheduler = self.scheduler.lock();
                scheduler.admit(&self.intake, now, &mut failed);
                let formed = scheduler.form(now, &mut failed);
                self.published.count_formed(&formed, failed.len());
                (formed, scheduler.publish(&self.published))
            };
            fail_all(failed);
            drop(formed.dead);
            if let Some(batch) = formed.batch {
                if ready {
                    self.wake_one();
                }
                return Taken::Batch(batch);
            }
            if !formed.more {
                return formed.held_until.map_or(Taken::Nothing, Taken::HeldUntil);
            }
        }
    }

    /// Settles a batch that has ended, however it did. Returns what each tenant bears of its device time.
    pub fn complete(&self, ticket: BatchTicket, settlement: Settlement<'_>, now: Nanos) -> SmallVec<[DeviceShare; 8]> {
        self.published.count_completed(&ticket, &settlement);
        self.change(now, |queue| queue.complete(ticket, settlement)).unwrap_or_default()
    }
}

/// Answers entries that will never be dispatched.
fn fail_all<E: ShardEntry>(failed: Vec<(E, SchedulerFault)>) {
    for (entry, fault) in failed {
        entry.fail(fault);
    }
}

impl<E, K> fmt::Debug for Shard<E, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").field("workers", &self.parkers.len()).field("published", &self.published).finish()
    }
}

#[cfg(test)]
mod tests;
