//! The answer to an inference: sized when it is small or its length is known, else in chunks; encoded at most 64 KiB at a
//! time, as the socket drains. The reply holds its tenant's permit and memory until the last byte; callers that do not
//! take theirs are ended by the stream beneath.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::body::{BodySize, BoxBody, MessageBody};
use actix_http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::HttpResponse;
use bytes::{Bytes, BytesMut};
use insula_core::codec::ENCODE_STEP_BYTES;
use insula_core::{Error, Outcome, Result};
use insula_runtime::reply::{Reply, Timings};
use insula_telemetry::{PendingRequest, WAY};

use super::context::RequestContext;
use super::failure::Failure;

/// Answers up to this size are written before their head is sent, so that they have a length and can still fail cleanly.
const SMALL: usize = ENCODE_STEP_BYTES;

/// How much room a small answer of unknown length is given first.
const FIRST_ROOM: usize = 4 << 10;

/// Steps after which the other requests of the thread have a turn.
const STEPS_IN_A_TURN: u32 = 4;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const INFERENCE_HEADER_CONTENT_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// The answer with `reply`, whose request ends in `tally`.
pub(crate) fn answer(
    mut reply: Reply,
    tally: PendingRequest,
    context: Rc<RequestContext>,
) -> std::result::Result<HttpResponse, Failure> {
    let timings = reply.timings();
    let encoding = tracing::info_span!(target: WAY, "encode").entered();
    let begun = reply.head().and_then(|head| begin(&mut reply, head.length).map(|begun| (head, begun)));
    let (head, begun) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            tally.fail(&error);
            return Err(error.into());
        }
    };
    drop(encoding);
    let body = match begun {
        Begun::Whole(bytes) => {
            tally.finish(Outcome::Success);
            BoxBody::new(bytes)
        }
        Begun::Rest { first } => BoxBody::new(Streamed {
            reply,
            tally: Some(tally),
            context,
            first,
            buffer: BytesMut::new(),
            left: head.length,
            steps: 0,
        }),
    };
    let mut response = HttpResponse::Ok().body(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(head.media_type));
    headers.insert(SERVER_TIMING, server_timing(&timings));
    if let Some(length) = head.description_length {
        headers.insert(INFERENCE_HEADER_CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(response)
}

/// How far an answer was written before its head is sent.
enum Begun {
    Whole(Bytes),
    Rest { first: Bytes },
}

fn begin(reply: &mut Reply, length: Option<usize>) -> Result<Begun> {
    let mut room = match length {
        Some(length) if length > SMALL => return Ok(Begun::Rest { first: Bytes::new() }),
        Some(length) => length.max(1),
        None => FIRST_ROOM,
    };
    let mut bytes = Vec::new();
    let mut written = 0;
    loop {
        bytes.resize(room, 0);
        while written < room {
            let count = reply.step(&mut bytes[written..])?;
            written += count;
            let ended = count == 0 || length.is_some_and(|length| written >= length);
            if ended {
                bytes.truncate(written);
                return whole(bytes, length);
            }
        }
        if room >= SMALL {
            return Ok(Begun::Rest { first: bytes.into() });
        }
        room = SMALL;
    }
}

fn whole(bytes: Vec<u8>, length: Option<usize>) -> Result<Begun> {
    match length {
        Some(length) if length != bytes.len() => Err(wrong_length(length, bytes.len())),
        _ => Ok(Begun::Whole(bytes.into())),
    }
}

fn wrong_length(announced: usize, written: usize) -> Error {
    let detail = format!("an answer announced with {announced} bytes has {written}");
    Error::internal("the answer could not be written", detail)
}

/// The times as the header `Server-Timing` gives them, in milliseconds.
fn server_timing(timings: &Timings) -> HeaderValue {
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let text = format!(
        "queue;dur={:.3}, device;dur={:.3}, total;dur={:.3}",
        milliseconds(timings.queue),
        milliseconds(timings.device),
        milliseconds(timings.total)
    );
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("total"))
}

/// An answer that is written as the socket drains.
struct Streamed {
    reply: Reply,
    tally: Option<PendingRequest>,
    context: Rc<RequestContext>,
    first: Bytes,
    buffer: BytesMut,
    /// Bytes that are still to come, if the length was announced.
    left: Option<usize>,
    steps: u32,
}

impl Streamed {
    fn next(&mut self) -> Result<Option<Bytes>> {
        if !self.first.is_empty() {
            return Ok(Some(std::mem::take(&mut self.first)));
        }
        if self.left == Some(0) || self.tally.is_none() {
            return Ok(None);
        }
        self.buffer.resize(ENCODE_STEP_BYTES, 0);
        let count = self.reply.step(&mut self.buffer)?;
        if let Some(left) = self.left {
            let rest = left.checked_sub(count).filter(|rest| *rest == 0 || count > 0);
            self.left = Some(rest.ok_or_else(|| wrong_length(left, count))?);
        }
        if count == 0 || self.left == Some(0) {
            self.end(Outcome::Success);
        }
        self.buffer.truncate(count);
        Ok((count > 0).then(|| self.buffer.split().freeze()))
    }

    fn end(&mut self, outcome: Outcome) {
        self.context.set_outcome(outcome);
        if let Some(tally) = self.tally.take() {
            tally.finish(outcome);
        }
    }
}

impl MessageBody for Streamed {
    type Error = Error;

    fn size(&self) -> BodySize {
        self.left.map_or(BodySize::Stream, |left| BodySize::Sized(left as u64))
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.steps += 1;
        if self.steps > STEPS_IN_A_TURN {
            self.steps = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = catch_unwind(AssertUnwindSafe(|| self.next()))
            .unwrap_or_else(|_| Err(Error::internal("the answer could not be written", "the encoder panicked")));
        if let Err(error) = &next {
            tracing::error!(request_id = %self.context.id(), ?error, "an answer broke off");
            self.end(Outcome::Failed);
        }
        Poll::Ready(next.transpose())
    }
}

impl Drop for Streamed {
    /// A caller that went away, or did not take the rest, cancelled its request.
    fn drop(&mut self) {
        if self.tally.take().is_some() {
            self.context.set_outcome(Outcome::Cancelled);
        }
    }
}
