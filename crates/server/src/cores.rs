//! How many threads serve HTTP: as many as the process may use processors, within bounds. Compute threads are the
//! runtime's. The plan is shown at start.

use std::fmt;

use crate::host::Host;
use crate::settings::Settings;

/// More threads than this gain nothing: a processor's worth of HTTP outruns any model.
const HTTP_WORKERS_MAX: usize = 16;

/// Which processors do what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CorePlan {
    host: Host,
    /// Threads that serve HTTP.
    pub(crate) http_workers: usize,
}

impl CorePlan {
    /// The plan for `host`, as far as `settings` do not say otherwise.
    pub(crate) fn new(host: Host, settings: &Settings) -> CorePlan {
        let http_workers = settings.http_workers.unwrap_or_else(|| host.processors().min(HTTP_WORKERS_MAX));
        CorePlan { host, http_workers }
    }
}

impl fmt::Display for CorePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} allowed", self.host.allowed)?;
        if let Some(quota) = self.host.quota {
            write!(f, ", {quota:.2} granted by the control group")?;
        }
        let threads = if self.http_workers == 1 { "thread serves" } else { "threads serve" };
        write!(f, "; {} {threads} HTTP, not pinned", self.http_workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_threads_follow_mask_and_quota_unless_they_are_set() {
        let host = |allowed, quota| Host { allowed, quota, memory: 0 };
        let mut settings = Settings::default();
        let workers = |host, settings: &Settings| CorePlan::new(host, settings).http_workers;
        assert_eq!(workers(host(2, None), &settings), 2);
        assert_eq!(workers(host(64, None), &settings), HTTP_WORKERS_MAX);
        assert_eq!(workers(host(64, Some(0.5)), &settings), 1);
        assert_eq!(workers(host(64, Some(1.5)), &settings), 2);
        settings.http_workers = Some(3);
        assert_eq!(workers(host(64, Some(0.5)), &settings), 3);
    }
}
