//! Reading a request's body: chunk by chunk as the socket has them, with bounds on the pause between two and on the whole.
//! It knows nothing of what the bytes mean. Inference writes them into the tenant's memory, a load gathers them.

use std::time::Duration;

use actix_http::error::PayloadError;
use actix_http::header::HeaderMap;
use actix_web::web::Payload;
use bytes::Bytes;
use futures_util::StreamExt;
use insula_core::{Code, Error};
use tokio::time::{Instant, timeout_at};

use super::admission::declared_length;
use super::context::RequestContext;
use super::failure::Failure;

/// The longest body that is read only to be forgotten.
const SKIPPED_BYTES: u64 = 64 << 10;

/// How long a body that is skipped may take.
const SKIPPED_WITHIN: Duration = Duration::from_secs(1);

/// A body that is being read.
pub(crate) struct IncomingBody<'c> {
    payload: Payload,
    context: &'c RequestContext,
    idle: Duration,
    total: Duration,
    ends: Instant,
    /// When the tenant's own timeout ends it, and that timeout.
    deadline: Option<Instant>,
}

impl<'c> IncomingBody<'c> {
    /// Begins to read; `remaining` is what is left of the tenant's timeout, if it bounds this.
    pub(crate) fn begin(
        payload: Payload,
        context: &'c RequestContext,
        remaining: Option<Duration>,
    ) -> IncomingBody<'c> {
        context.work().read_body();
        let limits = context.state().limits();
        let now = Instant::now();
        IncomingBody {
            payload,
            context,
            idle: limits.body_idle,
            total: limits.body_total,
            ends: now + limits.body_total,
            deadline: remaining.map(|remaining| now + remaining),
        }
    }

    /// The next bytes; `None` once the body is complete.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let patience = self.ends.min(Instant::now() + self.idle);
        let until = self.deadline.map_or(patience, |deadline| deadline.min(patience));
        match timeout_at(until, self.payload.next()).await {
            Ok(Some(Ok(chunk))) => {
                self.context.count_in(chunk.len());
                Ok(Some(chunk))
            }
            Ok(None) => {
                self.context.work().body_taken();
                Ok(None)
            }
            Ok(Some(Err(error))) => Err(broken(&error).into()),
            Err(_) => Err(self.too_slow(until)),
        }
    }

    fn too_slow(&self, until: Instant) -> Failure {
        if self.deadline == Some(until) {
            let message =
                "the tenant's timeout (timeout_ms) passed before the body was complete: send it faster, or raise it";
            return Error::new(Code::DeadlineExceeded, message).into();
        }
        let (what, limit, setting) = match until == self.ends {
            true => ("the body was not complete after", self.total, "requests.body_total"),
            false => ("no byte of the body came for", self.idle, "requests.body_idle"),
        };
        Failure::slow_body(format!("{what} {} ms ({setting})", limit.as_millis()))
    }
}

/// Reads and forgets the short body of a known caller's request that is refused, so that its connection serves on: when
/// many are refused, each closing its connection would only add to the load. A longer body ends the connection.
pub(crate) async fn skip(mut payload: Payload, context: &RequestContext, headers: &HeaderMap) {
    if !matches!(declared_length(headers), Ok(Some(length)) if length <= SKIPPED_BYTES) {
        return;
    }
    context.work().read_body();
    let skipping = async {
        while let Some(chunk) = payload.next().await {
            let Ok(chunk) = chunk else { return };
            context.count_in(chunk.len());
        }
        context.work().body_taken();
    };
    // one that takes longer, or breaks off, ends its connection like any other that is not read
    let _ = tokio::time::timeout(SKIPPED_WITHIN, skipping).await;
}

fn broken(error: &PayloadError) -> Error {
    match error {
        PayloadError::Incomplete(_) => {
            Error::new(Code::Cancelled, "the caller closed the connection before the body was complete")
        }
        PayloadError::EncodingCorrupted => Error::invalid("the body's chunked encoding is malformed"),
        PayloadError::Io(cause) => Error::new(Code::Cancelled, "the connection broke before the body was complete")
            .with_detail(cause.to_string()),
        other => Error::invalid(format!("the body could not be read: {other}")),
    }
}
