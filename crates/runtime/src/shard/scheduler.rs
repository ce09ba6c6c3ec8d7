//! What lies behind the shard's lock: the fair queue and the memory of its panics. A panic under the lock is contained here: the
//! first costs the entry in hand, a second within a second everything that is queued.

use std::time::Duration;

use insula_core::Nanos;

use super::published::Published;
use super::sync::{Intake, contain};
use super::{SchedulerFault, ShardEntry};
use crate::fair_queue::{Entry, FairQueue, FairQueueSettings, Formed, Forming};

/// A second panic within this time throws away what is queued.
const PANIC_MEMORY: Duration = Duration::from_secs(1);

/// Entries to be answered with their faults once the lock is free.
type Failed<E> = Vec<(E, SchedulerFault)>;

#[derive(Debug)]
pub(super) struct Scheduler<E> {
    queue: FairQueue<E>,
    settings: FairQueueSettings,
    last_panic: Option<Nanos>,
    /// Whether what is queued was held back for more rows when a batch was to be formed last.
    held: bool,
    /// Whether a worker that took now would find something, as published last.
    ready: bool,
}

impl<E> Scheduler<E> {
    pub(super) fn new(settings: FairQueueSettings) -> Self {
        Scheduler { queue: FairQueue::new(settings), settings, last_panic: None, held: false, ready: false }
    }

    /// Publishes counts, and whether a worker that took now would find something; returns that.
    pub(super) fn publish(&mut self, published: &Published) -> bool {
        let counts = self.queue.counts();
        published.update(counts);
        let ready = !self.held && counts.queued > 0;
        if std::mem::replace(&mut self.ready, ready) != ready {
            published.set_ready(ready);
        }
        ready
    }

    /// Moves what was pushed into the queue.
    pub(super) fn admit(&mut self, intake: &Intake<Entry<E>>, now: Nanos, failed: &mut Failed<E>) {
        intake.drain(|entry| {
            self.held = false;
            self.attend(now, failed, |queue| queue.push(entry));
        });
    }

    /// Forms a batch. What was claimed before a panic makes a batch all the same; without any, forming is to be tried again.
    pub(super) fn form(&mut self, now: Nanos, failed: &mut Failed<E>) -> Formed<E, E::Claimed>
    where
        E: ShardEntry,
    {
        let mut forming = Forming::default();
        let mut claim = |entry: E| entry.claim(now);
        let whole = self.attend(now, failed, |queue| queue.form_into(&mut forming, now, &mut claim)).is_some();
        let mut formed = self.queue.seal(forming);
        formed.more |= !whole && formed.batch.is_none();
        self.held = formed.batch.is_none() && !formed.more;
        formed
    }

    /// Lets `work` change the queue; `None` if it panicked, and the queue has been repaired.
    pub(super) fn attend<T>(
        &mut self,
        now: Nanos,
        failed: &mut Failed<E>,
        work: impl FnOnce(&mut FairQueue<E>) -> T,
    ) -> Option<T> {
        let result = contain(|| work(&mut self.queue));
        if result.is_none() {
            self.repair(now, failed);
        }
        result
    }

    fn repair(&mut self, now: Nanos, failed: &mut Failed<E>) {
        let again = self.last_panic.replace(now).is_some_and(|last| now.since(last) < PANIC_MEMORY);
        let struck = if again { None } else { contain(|| self.queue.rebuild()) };
        match struck {
            Some(entry) => failed.extend(entry.map(|entry| (entry, SchedulerFault::Struck))),
            None => failed.extend(self.start_over().into_iter().map(|entry| (entry, SchedulerFault::StartedOver))),
        }
    }

    /// Empties the queue. If even that panics it is replaced: its entries are dropped, which answers them too.
    fn start_over(&mut self) -> Vec<E> {
        contain(|| self.queue.start_over()).unwrap_or_else(|| {
            self.queue = FairQueue::new(self.settings);
            Vec::new()
        })
    }
}
