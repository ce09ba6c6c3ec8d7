//! Notices of death: an actor that panics is dropped by its loop, and what it leaves behind is this guard, which orders its
//! rebuild. actix's own supervisor does not restart after a panic. It counts rebuilds; it starts nothing itself.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use insula_core::Nanos;

/// Part of a supervised actor; when it is dropped in a panic, or without having been released, the actor is down.
pub struct DownNotice {
    on_down: Option<Box<dyn FnOnce() + Send>>,
    released: Arc<AtomicBool>,
}

impl DownNotice {
    /// Calls `on_down` once if the notice is dropped before `released` is set.
    pub fn new(released: Arc<AtomicBool>, on_down: impl FnOnce() + Send + 'static) -> DownNotice {
        DownNotice { on_down: Some(Box::new(on_down)), released }
    }
}

impl Drop for DownNotice {
    fn drop(&mut self) {
        if !self.released.load(Ordering::SeqCst)
            && let Some(on_down) = self.on_down.take()
        {
            on_down();
        }
    }
}

impl fmt::Debug for DownNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DownNotice")
    }
}

/// How often an actor was rebuilt lately.
#[derive(Debug, Default)]
pub struct RebuildHistory {
    times: VecDeque<Nanos>,
}

/// More rebuilds than this within [`REBUILD_WINDOW`], and the actor is given up.
pub const MAX_REBUILDS: usize = 5;

/// The window over which rebuilds are counted.
pub const REBUILD_WINDOW: Duration = Duration::from_secs(60);

impl RebuildHistory {
    /// Notes a death at `now`; says whether another rebuild is allowed.
    pub fn allow(&mut self, now: Nanos) -> bool {
        self.times.retain(|time| now.since(*time) < REBUILD_WINDOW);
        self.times.push_back(now);
        self.times.len() <= MAX_REBUILDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_that_panics_leaves_a_notice_and_one_that_was_released_does_not() {
        for (released, expected) in [(false, true), (true, false)] {
            let (flag, down) = (Arc::new(AtomicBool::new(released)), Arc::new(AtomicBool::new(false)));
            let seen = down.clone();
            drop(DownNotice::new(flag, move || seen.store(true, Ordering::SeqCst)));
            assert_eq!(down.load(Ordering::SeqCst), expected);
        }
    }

    #[test]
    fn the_sixth_death_within_a_minute_is_the_last() {
        let mut history = RebuildHistory::default();
        let second = |count: u64| Nanos(count * 1_000_000_000);
        assert!((0..5).all(|count| history.allow(second(count))));
        assert!(!history.allow(second(5)));
        assert!(history.allow(second(100)), "deaths of long ago were held against it");
    }
}
