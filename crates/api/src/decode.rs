//! From a request's body to a checked request, in bounded steps: unpack it, read its description, place its tensors, pass
//! them through the wall. Runtime drives the decoder; server chooses it from the headers. It never sees a socket.

mod element;
mod envelope;
mod field;
mod fill;
mod float16;
mod inflate;
mod input;
mod nesting;
mod output;
mod raw;

use std::sync::Arc;
use std::time::Duration;

use insula_core::codec::DECODE_STEP_BYTES;
use insula_core::{CheckedRequest, Decode, ModelSignature, Result, TensorSink};

use crate::format::{ContentEncoding, RequestFormat};
use envelope::Envelope;
use inflate::Inflate;
use raw::RawRequest;

/// A decoder for a body of `format`, packed as `encoding`, for the model with `signature`. A packed body may unpack to
/// `unpacked_limit` bytes; one more is refused with `PayloadTooLarge`.
pub fn decoder(
    format: RequestFormat,
    encoding: ContentEncoding,
    signature: Arc<ModelSignature>,
    unpacked_limit: usize,
) -> Box<dyn Decode> {
    let body = match format {
        RequestFormat::Json => BodyDecoder::Described(Envelope::new(signature, None)),
        RequestFormat::Binary { description_length: 0 } => BodyDecoder::Raw(RawRequest::new(signature)),
        RequestFormat::Binary { description_length } => {
            BodyDecoder::Described(Envelope::new(signature, Some(description_length)))
        }
    };
    Box::new(RequestDecoder { inflate: Inflate::new(encoding, unpacked_limit), body })
}

struct RequestDecoder {
    inflate: Option<Box<Inflate>>,
    body: BodyDecoder,
}

#[allow(clippy::large_enum_variant, reason = "one of them a request, boxed as a whole")]
enum BodyDecoder {
    Described(Envelope),
    Raw(RawRequest),
}

impl Decode for RequestDecoder {
    fn step(&mut self, sink: &mut dyn TensorSink, budget: usize) -> Result<Option<CheckedRequest>> {
        let mut budget = budget.clamp(1, DECODE_STEP_BYTES);
        if let Some(inflate) = &mut self.inflate {
            match inflate.step(sink, budget)? {
                Some(left) if left > 0 => budget = left,
                Some(_) => {
                    self.inflate = None;
                    return Ok(None);
                }
                None => return Ok(None),
            }
            self.inflate = None;
        }
        match &mut self.body {
            BodyDecoder::Described(envelope) => envelope.step(sink, budget),
            BodyDecoder::Raw(raw) => raw.step(sink, budget),
        }
    }

    fn predicted_cost(&self, body_bytes: usize) -> Duration {
        let bytes = u64::try_from(body_bytes).unwrap_or(u64::MAX);
        if self.inflate.is_some() {
            return Duration::from_nanos(bytes.saturating_mul(PACKED_NANOS));
        }
        let text = match &self.body {
            BodyDecoder::Described(envelope) => {
                envelope.description_length().map_or(bytes, |length| bytes.min(length as u64))
            }
            BodyDecoder::Raw(_) => 0,
        };
        // raw tensors are used where they lie; only BYTES are walked
        let raw = (bytes - text) / RAW_BYTES_A_NANO;
        Duration::from_nanos(text.saturating_mul(TEXT_NANOS).saturating_add(raw))
    }
}

/// Nanoseconds a byte of JSON text, as measured with numbers of usual lengths.
const TEXT_NANOS: u64 = 3;

/// Nanoseconds a byte of a packed body, which unpacks to several bytes of text.
const PACKED_NANOS: u64 = 20;

/// Bytes of raw tensors that cost a nanosecond.
const RAW_BYTES_A_NANO: u64 = 3;
