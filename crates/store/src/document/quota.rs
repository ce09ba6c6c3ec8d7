//! The `[quota]` table: ranges, defaults, and how its limits must fit each other. The limits themselves are kept by the
//! runtime.

use std::time::Duration;

use insula_core::Quota;

use super::TIMEOUT_MAX;
use super::checker::Checker;
use super::section::Section;
use crate::byte_size;

/// Requests per second, slowest and fastest; one in seventeen minutes is slow enough for any trial.
const RATE: std::ops::RangeInclusive<f64> = 0.001..=10_000_000.0;
const COUNT_MAX: u32 = 10_000_000;
const MEMORY: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 44;

const KEYS: [&str; 8] =
    ["weight", "requests_per_second", "burst", "concurrency", "queue", "memory", "request_bytes", "timeout_ms"];
const UNAVAILABLE: [&str; 4] = ["memory_reserved", "gpu_memory", "connections", "device_share"];

/// The quota that `section` states, with the defaults of [`Quota::default`] where it is silent.
pub(super) fn read(section: Option<Section<'_>>, checker: &mut Checker<'_>) -> Quota {
    let default = Quota::default();
    let Some(section) = section else { return default };
    section.refuse_others(checker, &KEYS, &UNAVAILABLE);
    let timeout_most = u64::try_from(TIMEOUT_MAX.as_millis()).unwrap_or(u64::MAX);
    let memory = section.size(checker, "memory", MEMORY).unwrap_or(default.memory);
    let request_bytes = section.size(checker, "request_bytes", 1..=*MEMORY.end());
    if request_bytes.is_some_and(|bytes| bytes > memory) {
        let most = byte_size::format(memory);
        section.bad_value(checker, "request_bytes", format_args!("must not be over the tenant's memory, {most}"));
    }
    Quota {
        weight: section.number(checker, "weight", Quota::WEIGHT_RANGE).unwrap_or(default.weight),
        requests_per_second: section
            .number(checker, "requests_per_second", RATE)
            .unwrap_or(default.requests_per_second),
        burst: section.count(checker, "burst", COUNT_MAX).unwrap_or(default.burst),
        concurrency: section.count(checker, "concurrency", COUNT_MAX).unwrap_or(default.concurrency),
        queue: section.count(checker, "queue", COUNT_MAX).unwrap_or(default.queue),
        memory,
        // A tenant whose memory is smaller than the default for one request can still send what fits.
        request_bytes: request_bytes.unwrap_or(default.request_bytes.min(memory)),
        timeout: section.whole(checker, "timeout_ms", 1..=timeout_most).map_or(default.timeout, Duration::from_millis),
    }
}
