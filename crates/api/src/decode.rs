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
}
