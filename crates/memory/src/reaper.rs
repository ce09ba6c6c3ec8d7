//! The end of domains: scrubs and unmaps the windows of those that nobody leases from any more, on a thread of its own (or
//! inline, for tests), and knows which closed ones still wait for a lease. It never sees a window while a lease of it is out.

use std::fmt;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use insula_core::{Error, Nanos, Result};
use parking_lot::{Condvar, Mutex};

use crate::allocator::Allocator;
use crate::backing::Backing;
use crate::budget::BudgetShare;
use crate::domain::windows::Windows;
use crate::domain::{Domain, Life, Scrub};

/// How long a closed domain may wait for its last lease before it is reported.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(30);

/// What is left of a domain when its last lease has come back.
pub(crate) struct Remains {
    pub backing: Arc<dyn Backing>,
    pub windows: Windows,
    pub allocator: Allocator,
    pub share: BudgetShare,
    pub scrub: Scrub,
}

impl Remains {
    fn reap(mut self) {
        while self.scrub != Scrub::Off
            && let Some(piece) = self.allocator.take_dirty()
        {
            self.windows.scrub(&*self.backing, &piece);
            self.allocator.give_clean(piece);
        }
        self.windows.release(&*self.backing);
        // only now may somebody else take the bytes
        drop(self.share);
    }
}

/// A closed domain that leases still keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueDomain {
    /// The domain's label.
    pub label: String,
    /// How many leases are out.
    pub leases: u64,
    /// How many bytes they are.
    pub bytes: u64,
    /// How long ago it was closed.
    pub closed_for: Duration,
}

/// Ends domains. Stopping or dropping it ends all that are waiting; those that end later do so on the thread of their last
/// lease.
pub struct Reaper {
    queue: Arc<ReaperQueue>,
    thread: Option<JoinHandle<()>>,
}

impl Reaper {
    /// A reaper with a thread of its own, named `insula-reaper`. Fails when the system has no thread left.
    pub fn start() -> Result<Reaper> {
        let queue = Arc::new(ReaperQueue::default());
        let inner = Arc::clone(&queue);
        let thread = thread::Builder::new()
            .name("insula-reaper".into())
            .spawn(move || inner.serve())
            .map_err(|error| Error::internal("the reaper's thread could not be started", error.to_string()))?;
        Ok(Reaper { queue, thread: Some(thread) })
    }

    /// A reaper without a thread: domains that have ended wait for [`Reaper::reap_pending`].
    pub fn inline() -> Reaper {
        Reaper { queue: Arc::default(), thread: None }
    }

    /// Ends the waiting domains on this thread and returns how many there were.
    pub fn reap_pending(&self) -> usize {
        let waiting = std::mem::take(&mut self.queue.pending.lock().waiting);
        let count = waiting.len();
        waiting.into_iter().for_each(Remains::reap);
        count
    }

    /// The domains closed [`DRAIN_PATIENCE`] ago or longer that still have leases out.
    pub fn overdue(&self, now: Nanos) -> Vec<OverdueDomain> {
        self.queue.overdue(now)
    }

    /// Ends what is waiting and joins the thread.
    pub fn stop(mut self) {
        self.finish();
    }

    pub(crate) fn queue(&self) -> Arc<ReaperQueue> {
        Arc::clone(&self.queue)
    }

    fn finish(&mut self) {
        self.queue.pending.lock().stopped = true;
        self.queue.wake.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the reaper's thread ended by a panic");
        }
        self.reap_pending();
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.finish();
    }
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper").field("waiting", &self.queue.pending.lock().waiting.len()).finish_non_exhaustive()
    }
}

/// Where domains leave what is left of them.
#[derive(Default)]
pub(crate) struct ReaperQueue {
    pending: Mutex<Pending>,
    wake: Condvar,
    draining: Mutex<Vec<Draining>>,
}

#[derive(Default)]
struct Pending {
    waiting: Vec<Remains>,
    stopped: bool,
}

struct Draining {
    domain: Weak<Domain>,
    closed_at: Nanos,
}

impl ReaperQueue {
    /// Takes what is left of a domain.
    pub(crate) fn submit(&self, remains: Remains) {
        let mut pending = self.pending.lock();
        if pending.stopped {
            drop(pending);
            remains.reap();
            return;
        }
        pending.waiting.push(remains);
        drop(pending);
        self.wake.notify_one();
    }

    /// Remembers a domain that was closed while leases were out.
    pub(crate) fn watch(&self, domain: &Arc<Domain>, closed_at: Nanos) {
        let mut draining = self.draining.lock();
        draining.retain(|other| other.domain.strong_count() > 0);
        draining.push(Draining { domain: Arc::downgrade(domain), closed_at });
    }

    fn overdue(&self, now: Nanos) -> Vec<OverdueDomain> {
        let mut kept = Vec::new();
        let mut overdue = Vec::new();
        self.draining.lock().retain(|entry| {
            let Some(domain) = entry.domain.upgrade() else { return false };
            let usage = domain.usage();
            let closed_for = now.since(entry.closed_at);
            if usage.life == Life::Closed && closed_for >= DRAIN_PATIENCE {
                let label = domain.label().to_owned();
                overdue.push(OverdueDomain { label, leases: usage.leases, bytes: usage.in_use, closed_for });
            }
            // if this was the last hold on the domain, its end must not run under the lock
            kept.push(domain);
            usage.life == Life::Closed
        });
        drop(kept);
        overdue
    }

    fn serve(&self) {
        let mut pending = self.pending.lock();
        loop {
            let waiting = std::mem::take(&mut pending.waiting);
            if waiting.is_empty() && pending.stopped {
                return;
            }
            if waiting.is_empty() {
                self.wake.wait(&mut pending);
                continue;
            }
            drop(pending);
            waiting.into_iter().for_each(Remains::reap);
            pending = self.pending.lock();
        }
    }
}

impl fmt::Debug for ReaperQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaperQueue").finish_non_exhaustive()
    }
}
