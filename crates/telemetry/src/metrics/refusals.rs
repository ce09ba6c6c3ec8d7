//! How often which limit refused a tenant. The limits form a closed list, so that no text from elsewhere can become a label;
//! a limit that is not on it counts as `other`.

use insula_core::Refusal;

use super::counter::Counter;

/// The limits of a tenant's own document: always shown, so that the first refusal is already a rise.
const OWN: [&str; 6] = ["requests_per_second", "concurrency", "queue", "memory", "request_bytes", "timeout_ms"];

/// Limits of the server, and states: shown once they have refused something.
const SERVERS: [&str; 22] = [
    "server_memory",
    "server_connections",
    "connections",
    "device_memory",
    "gpu_memory",
    "device_share",
    "max_batch",
    "plan_builds",
    "host_lane",
    "overload",
    "starting",
    "draining",
    "suspended",
    "tenant_deleted",
    "tenant_failed",
    "model_not_ready",
    "shard_unhealthy",
    "failed_keys",
    "model_loads",
    "placement",
    "stopped",
    "uploads",
];

const LIMITS: usize = OWN.len() + SERVERS.len();

/// One tenant's refusals.
#[derive(Debug)]
pub(super) struct Refusals {
    by_limit: [Counter; LIMITS],
    other: Counter,
}

impl Refusals {
    pub(super) fn new() -> Refusals {
        Refusals { by_limit: std::array::from_fn(|_| Counter::default()), other: Counter::default() }
    }

    pub(super) fn count(&self, refusal: &Refusal) {
        let position = OWN.iter().chain(&SERVERS).position(|limit| *limit == refusal.limit);
        position.and_then(|position| self.by_limit.get(position)).unwrap_or(&self.other).add(1);
    }

    /// The limits to show, with their counts.
    pub(super) fn read(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let listed = OWN.iter().chain(&SERVERS).copied().zip(&self.by_limit);
        let all = listed.chain(std::iter::once(("other", &self.other)));
        all.map(|(limit, count)| (limit, count.get())).filter(|(limit, count)| *count > 0 || OWN.contains(limit))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refusal(limit: &'static str) -> Refusal {
        Refusal { limit, value: 1.0, used: 1.0, window: Duration::ZERO, retry_after: Duration::ZERO }
    }

    #[test]
    fn each_limit_counts_its_own_and_strange_ones_count_together() {
        let refusals = Refusals::new();
        for limit in ["queue", "queue", "draining", "failed_keys", "invented", "made-up"] {
            refusals.count(&refusal(limit));
        }
        let shown: Vec<_> = refusals.read().filter(|(_, count)| *count > 0).collect();
        assert_eq!(shown, [("queue", 2), ("draining", 1), ("failed_keys", 1), ("other", 2)]);
    }

    #[test]
    fn a_tenants_own_limits_are_shown_from_the_start() {
        assert_eq!(Refusals::new().read().map(|(limit, _)| limit).collect::<Vec<_>>(), OWN);
    }
}
