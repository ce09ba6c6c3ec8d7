//! A number that only grows, added to from any thread without waiting. Every counter of the metrics is one of these, held
//! by the handle that adds to it; nothing is looked up by name on the way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A count of things, or of nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        // Figures order nothing else, so each need only be whole.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds a time, in nanoseconds.
    pub(crate) fn add_time(&self, time: Duration) {
        self.add(nanos(time));
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The nanoseconds added so far, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.get() as f64 / 1e9
    }
}

/// A time in nanoseconds; 584 years is the longest.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
