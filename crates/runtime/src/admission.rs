//! Admission: may this request come in? Asked with the headers alone, before the first byte of the body. Each limit is
//! checked in an order that makes a refusal consume nothing: state, concurrency, queue, bytes, and the rate token last.

pub mod gcra;
pub mod permit;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use insula_core::{Code, Error, ModelSignature, Nanos, Refusal, Result};
use insula_memory::BodyBuffer;

use crate::admission::permit::{Permit, QueuePlace};
use crate::model::ServedModel;
use crate::tenant::TenantHandle;
use crate::tenant::state::TenantSnapshot;

/// How long a caller should wait before it tries again for a place that comes back when any request ends.
const PLACE_RETRY: Duration = Duration::from_millis(100);

/// An admitted request: its places in the tenant's limits, given back on drop.
pub struct Admitted {
    pub(crate) tenant: TenantHandle,
    pub(crate) model: Arc<ServedModel>,
    pub(crate) permit: Permit,
    pub(crate) place: QueuePlace,
    pub(crate) arrived: Nanos,
    pub(crate) timeout: Duration,
    pub(crate) weight: crate::fair_queue::Weight,
    request_bytes: u64,
}

impl TenantHandle {
    /// Admits one request for `model` with a body of `body_length` bytes, if that is declared. A refusal consumes nothing
    /// and says which limit it was.
    pub fn admit(&self, model: &str, version: Option<&str>, body_length: Option<u64>) -> Result<Admitted> {
        let core = self.core();
        let snapshot = core.snapshot();
        snapshot.life.check_serving(core.id())?;
        let served = snapshot.find(model, version)?.clone();
        let quota = &snapshot.quota;
        let permit = Permit::take(core.usage(), quota.concurrency)
            .map_err(|used| place_taken("concurrency", "requests in flight", quota.concurrency, used))?;
        let place = QueuePlace::take(core.usage(), quota.queue)
            .map_err(|used| place_taken("queue", "requests waiting", quota.queue, used))?;
        check_length(body_length, quota.request_bytes)?;
        // the state may have changed between the snapshot and the count: whoever drains waits for counted requests only
        core.snapshot().life.check_serving(core.id())?;
        core.services().check_open()?;
        let arrived = core.clock().now();
        take_token(self, &snapshot, arrived)?;
        Ok(Admitted {
            tenant: self.clone(),
            model: served,
            permit,
            place,
            arrived,
            timeout: quota.timeout,
            weight: snapshot.weight,
            request_bytes: quota.request_bytes,
        })
    }
}

fn check_length(body_length: Option<u64>, limit: u64) -> Result<()> {
    match body_length {
        Some(length) if length > limit => Err(Error::new(
            Code::PayloadTooLarge,
            format!("the body has {length} bytes, the limit is {limit} bytes (request_bytes)"),
        )),
        _ => Ok(()),
    }
}

fn place_taken(limit: &'static str, what: &str, value: u32, used: u32) -> Error {
    let refusal = Refusal {
        limit,
        value: f64::from(value),
        used: f64::from(used),
        window: Duration::ZERO,
        retry_after: PLACE_RETRY,
    };
    Error::quota(
        format!("the tenant has {used} {what}, its limit is {value} ({limit}): try again when one has ended"),
        refusal,
    )
}

fn take_token(tenant: &TenantHandle, snapshot: &TenantSnapshot, now: Nanos) -> Result<()> {
    tenant.core().rate().take(snapshot.rate, now).map_err(|wait| {
        let per_second = snapshot.quota.requests_per_second;
        let refusal = Refusal {
            limit: "requests_per_second",
            value: per_second,
            used: per_second,
            window: Duration::from_secs(1),
            retry_after: wait,
        };
        let millis = wait.as_millis().max(1);
        let message = format!(
            "the tenant sends more than {per_second} requests/s with bursts of {} (requests_per_second): try again in {millis} ms",
            snapshot.quota.burst
        );
        Error::quota(message, refusal)
    })
}

impl Admitted {
    /// Inputs, outputs and batching of the model that will answer.
    pub fn signature(&self) -> &Arc<ModelSignature> {
        self.model.loaded.signature()
    }

    /// The most bytes the body may have, unpacked.
    pub fn request_bytes(&self) -> u64 {
        self.request_bytes
    }

    /// What is left of the tenant's timeout.
    pub fn remaining(&self) -> Duration {
        let now = self.tenant.core().clock().now();
        self.timeout.saturating_sub(now.since(self.arrived))
    }

    /// Room for the body in the tenant's domain. `declared` is its length if known; `description_length` is where raw
    /// tensors begin, which is put on a multiple of 64. Fails with the tenant's memory refusal.
    pub fn body(&self, declared: Option<usize>, description_length: Option<usize>) -> Result<BodySink> {
        let domain = self.tenant.core().domain();
        let limit = self.request_bytes;
        let buffer = match declared {
            Some(length) => BodyBuffer::with_declared(domain, length, description_length, limit)?,
            None => BodyBuffer::growing(domain, limit)?,
        };
        Ok(BodySink { buffer })
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("tenant", self.tenant.id())
            .field("arrived", &self.arrived)
            .finish_non_exhaustive()
    }
}

/// Where the server writes a body as it arrives.
#[derive(Debug)]
pub struct BodySink {
    buffer: BodyBuffer,
}

impl BodySink {
    /// Appends `chunk`. Fails when the body is longer than declared or than the limit, or when the tenant's memory is used up.
    pub fn write(&mut self, chunk: &[u8]) -> Result<()> {
        self.buffer.write(chunk)
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn into_buffer(self) -> BodyBuffer {
        self.buffer
    }
}
