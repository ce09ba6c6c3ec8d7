//! Guards that give back on drop: a request's place among those admitted and its place in the fair queues. They count,
//! they decide nothing. Admission makes them; the job and its answer carry them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much of a tenant's counted limits is in use.
#[derive(Debug, Default)]
pub struct Usage {
    inflight: AtomicU32,
    queued: AtomicU32,
}

impl Usage {
    /// Requests admitted and not yet answered.
    pub fn inflight(&self) -> u32 {
        self.inflight.load(Ordering::SeqCst)
    }

    /// Requests that hold a place in fair queues.
    pub fn queued(&self) -> u32 {
        self.queued.load(Ordering::SeqCst)
    }
}

/// An admitted request's place in its tenant's concurrency; held until the last byte of the answer.
#[derive(Debug)]
pub struct Permit(Arc<Usage>);

impl Permit {
    /// Takes a place if fewer than `limit` are taken, else says how many are.
    pub fn take(usage: &Arc<Usage>, limit: u32) -> Result<Permit, u32> {
        match count_up(&usage.inflight, limit) {
            Ok(()) => Ok(Permit(usage.clone())),
            Err(used) => Err(used),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.inflight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A place in the fair queues; held until the entry has left its heap, also when it was cancelled before.
#[derive(Debug)]
pub struct QueuePlace(Arc<Usage>);

impl QueuePlace {
    /// Takes a place if fewer than `limit` are taken, else says how many are.
    pub fn take(usage: &Arc<Usage>, limit: u32) -> Result<QueuePlace, u32> {
        match count_up(&usage.queued, limit) {
            Ok(()) => Ok(QueuePlace(usage.clone())),
            Err(used) => Err(used),
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Adds one unless `limit` is reached; the counter never shows more than the limit, so no neighbour is refused for a
/// place that is given back a moment later.
fn count_up(counter: &AtomicU32, limit: u32) -> Result<(), u32> {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| (used < limit).then_some(used + 1)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_comes_back_when_dropped() {
        let usage = Arc::new(Usage::default());
        let permits: Vec<_> = (0..2).map(|_| Permit::take(&usage, 2).unwrap()).collect();
        assert_eq!(Permit::take(&usage, 2).unwrap_err(), 2);
        drop(permits);
        assert_eq!(usage.inflight(), 0);
        assert!(Permit::take(&usage, 2).is_ok());
    }

    #[test]
    fn many_threads_never_pass_the_limit_and_give_everything_back() {
        let usage = Arc::new(Usage::default());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        if let Ok(_place) = QueuePlace::take(&usage, 3) {
                            assert!(usage.queued() <= 3);
                        }
                    }
                });
            }
        });
        assert_eq!(usage.queued(), 0);
    }
}
