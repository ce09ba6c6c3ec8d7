//! Stopping in order: readiness down, drain delay, listeners closed, requests ended, the house stopped, threads joined,
//! the access log flushed. Each step is bounded, and none resets a connection that is being served. `serve` calls it on a
//! signal; the next signal makes every wait end at once.

use std::time::{Duration, Instant};

use crate::start::Server;

/// How long a connection that has just been made may take to send its request once no other is accepted.
const FRESH: Duration = Duration::from_secs(1);

/// How often the end of the last request is looked for.
const POLL: Duration = Duration::from_millis(5);

/// How long the last answers may take to leave.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// How long the access log may take to be written.
const FLUSH: Duration = Duration::from_secs(2);

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Requests that did not end within the time and were answered 503 or cut off.
    pub unfinished: usize,
}

impl Server {
    /// Stops the server with the delays of its settings.
    pub fn stop(self) -> Stopped {
        self.stop_unless(&mut |wait| {
            std::thread::sleep(wait);
            false
        })
    }

    /// Stops the server. Each wait goes through `hurry`, which waits that long at most and says whether the rest of all
    /// waits should be skipped.
    pub fn stop_unless(self, hurry: &mut dyn FnMut(Duration) -> bool) -> Stopped {
        let Server { state, mut http, admin, settings, .. } = self;
        tracing::info!(delay_ms = settings.drain_delay.as_millis() as u64, "draining");
        state.begin_drain();
        let mut hurried = hurry(settings.drain_delay);
        http.close();
        let closed = Instant::now();
        while !hurried && http.open() > 0 && closed.elapsed() < settings.drain_timeout {
            http.end_idle(closed.elapsed() >= FRESH);
            hurried = hurry(POLL);
        }
        let unfinished = state.take_runtime().map_or(0, |house| house.stop(Duration::ZERO).unfinished);
        let answered = Instant::now();
        while http.open() > 0 && answered.elapsed() < LAST_ANSWERS {
            http.end_idle(true);
            std::thread::sleep(POLL);
        }
        http.finish();
        admin.finish();
        if let Some(Err(error)) = state.access_log().map(|log| log.shutdown(FLUSH)) {
            tracing::warn!(%error, "the access log was not written to its end");
        }
        Stopped { unfinished }
    }
}
