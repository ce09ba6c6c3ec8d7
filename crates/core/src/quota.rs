//! What a tenant may use, in force at one moment, with the defaults that hold where its document is silent. It counts
//! nothing: admission and memory do.

use std::time::Duration;

/// A tenant's limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Share of a contended shard relative to other tenants, 0.01 to 1000.
    pub weight: f64,
    /// Requests per second in the long run.
    pub requests_per_second: f64,
    /// Requests that may come at once after a quiet time.
    pub burst: u32,
    /// Requests admitted and not yet answered (headers to last byte).
    pub concurrency: u32,
    /// Requests waiting in fair queues.
    pub queue: u32,
    /// Bytes of the tenant's memory domain.
    pub memory: u64,
    /// Bytes of one request's body, after unpacking.
    pub request_bytes: u64,
    /// The longest a request may take, from its headers to its answer.
    pub timeout: Duration,
}

impl Quota {
    /// The smallest and largest weight.
    pub const WEIGHT_RANGE: std::ops::RangeInclusive<f64> = 0.01..=1000.0;
}

impl Default for Quota {
    fn default() -> Self {
        Quota {
            weight: 1.0,
            requests_per_second: 100.0,
            burst: 200,
            concurrency: 64,
            queue: 256,
            memory: 256 << 20,
            request_bytes: 16 << 20,
            timeout: Duration::from_secs(30),
        }
    }
}
