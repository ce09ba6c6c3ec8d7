//! What a shard lets others read without its lock: how much work waits, and counts. Written by whoever holds the scheduler's
//! lock; the router and observers read.

use std::sync::atomic::AtomicU64 as Counter;
use std::time::Duration;

use super::sync::{AtomicUsize, Ordering};
use super::{Parker, Shard, ShardEntry};
use crate::fair_queue::{BatchTicket, FairQueueCounts, Formed, Settlement};

/// Counts of a shard at one moment; each is right, together they may be a moment apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShardObservation {
    /// Entries in the fair queue and in the intake.
    pub queued: u64,
    /// Tenants with entries in the fair queue.
    pub waiting_tenants: u64,
    /// Batches that run.
    pub running: u64,
    /// Predicted device time of all that waits and runs.
    pub backlog: Duration,
    /// V, in nanoseconds.
    pub virtual_nanos: u64,
    /// Batches formed so far.
    pub batches: u64,
    /// Entries dispatched so far.
    pub dispatched: u64,
    /// Rows dispatched so far, padding not counted.
    pub rows: u64,
    /// Rows that the bucket would have padded and that went to tenants at no charge.
    pub free_rows: u64,
    /// Entries that were withdrawn or late when they came up.
    pub dead: u64,
    /// Entries failed by panics of the scheduler.
    pub failed: u64,
    /// Device time measured so far.
    pub device: Duration,
}

#[derive(Debug)]
pub(super) struct Published {
    /// Whether a worker that took now would find something: read by workers about to rest.
    ready: AtomicUsize,
    queued: Counter,
    waiting_tenants: Counter,
    running: Counter,
    backlog: Counter,
    virtual_nanos: Counter,
    batches: Counter,
    dispatched: Counter,
    rows: Counter,
    free_rows: Counter,
    dead: Counter,
    failed: Counter,
    device: Counter,
    /// Moving average of device time an entry, for what still lies in the intake.
    entry_nanos: Counter,
}

impl Default for Published {
    fn default() -> Self {
        let zero = || Counter::new(0);
        Published {
            ready: AtomicUsize::new(0),
            queued: zero(),
            waiting_tenants: zero(),
            running: zero(),
            backlog: zero(),
            virtual_nanos: zero(),
            batches: zero(),
            dispatched: zero(),
            rows: zero(),
            free_rows: zero(),
            dead: zero(),
            failed: zero(),
            device: zero(),
            entry_nanos: zero(),
        }
    }
}

impl Published {
    /// Publishes counts.
    pub(super) fn update(&self, counts: FairQueueCounts) {
        self.queued.store(counts.queued as u64, Ordering::Relaxed);
        self.waiting_tenants.store(counts.waiting_tenants as u64, Ordering::Relaxed);
        self.running.store(counts.running as u64, Ordering::Relaxed);
        self.backlog.store(nanos(counts.backlog), Ordering::Relaxed);
        self.virtual_nanos.store(counts.virtual_nanos, Ordering::Relaxed);
        self.free_rows.store(counts.free_rows, Ordering::Relaxed);
    }

    /// Publishes whether a worker that took now would find something.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.store(usize::from(ready), Ordering::Relaxed);
    }

    pub(super) fn count_formed<E, C>(&self, formed: &Formed<E, C>, failed: usize) {
        self.dead.fetch_add(formed.dead.len() as u64, Ordering::Relaxed);
        self.count_failed(failed);
        if let Some(batch) = &formed.batch {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.dispatched.fetch_add(batch.entries.len() as u64, Ordering::Relaxed);
            self.rows.fetch_add(u64::from(batch.rows), Ordering::Relaxed);
        }
    }

    pub(super) fn count_failed(&self, failed: usize) {
        self.failed.fetch_add(failed as u64, Ordering::Relaxed);
    }

    pub(super) fn count_completed(&self, ticket: &BatchTicket, settlement: &Settlement<'_>) {
        let measured = match settlement {
            Settlement::Measured(measured) => nanos(*measured),
            Settlement::PerTenant(parts) => {
                parts.iter().fold(0, |sum: u64, (_, part)| sum.saturating_add(nanos(*part)))
            }
        };
        self.device.fetch_add(measured, Ordering::Relaxed);
        let (entry, average) = (measured / ticket.entries().max(1), self.entry_nanos.load(Ordering::Relaxed));
        let next = if average == 0 { entry } else { average - average / 8 + entry / 8 };
        self.entry_nanos.store(next, Ordering::Relaxed);
    }

    /// Whether a worker that took now would find something in the fair queue.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) > 0
    }
}

impl<E: ShardEntry, K: Parker> Shard<E, K> {
    /// Predicted device time of all that waits and runs, in nanoseconds. Cheap; read for each request that has a choice.
    pub fn backlog(&self) -> u64 {
        let coming = (self.intake.len() as u64).saturating_mul(self.published.entry_nanos.load(Ordering::Relaxed));
        self.published.backlog.load(Ordering::Relaxed).saturating_add(coming)
    }

    /// Counts at this moment, without the scheduler's lock.
    pub fn observe(&self) -> ShardObservation {
        let read = |counter: &Counter| counter.load(Ordering::Relaxed);
        let published = &self.published;
        ShardObservation {
            queued: read(&published.queued).saturating_add(self.intake.len() as u64),
            waiting_tenants: read(&published.waiting_tenants),
            running: read(&published.running),
            backlog: Duration::from_nanos(self.backlog()),
            virtual_nanos: read(&published.virtual_nanos),
            batches: read(&published.batches),
            dispatched: read(&published.dispatched),
            rows: read(&published.rows),
            free_rows: read(&published.free_rows),
            dead: read(&published.dead),
            failed: read(&published.failed),
            device: Duration::from_nanos(read(&published.device)),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
