//! The seam between formats and memory. A [`Decode`] turns a body into a checked request, a [`Encode`] turns outputs into
//! a body, both in bounded steps; a [`TensorSink`] and a [`TensorSource`] are the memory they work on. The api crate
//! implements the first two, memory the last two, runtime drives them, and none knows the others.

use std::ops::Range;
use std::time::Duration;

use crate::dtype::DType;
use crate::error::Result;
use crate::request::CheckedRequest;
use crate::shape::Shape;
use crate::tensor::TensorSlot;

/// The most body bytes a decoder may consume in one step.
pub const DECODE_STEP_BYTES: usize = 256 << 10;

/// The most bytes an encoder may write in one step.
pub const ENCODE_STEP_BYTES: usize = 64 << 10;

/// Turns the body that lies in a sink into a checked request.
pub trait Decode: Send {
    /// Consumes up to about `budget` bytes of the body (at most [`DECODE_STEP_BYTES`]). `Ok(None)`: call again; `Ok(Some)`:
    /// done, do not call again. An error is the caller's (4xx) unless its code says otherwise.
    fn step(&mut self, sink: &mut dyn TensorSink, budget: usize) -> Result<Option<CheckedRequest>>;

    /// How long reading `body_bytes` bytes is predicted to take. The default is that of a text format: 3 ns a byte.
    fn predicted_cost(&self, body_bytes: usize) -> Duration {
        Duration::from_nanos((body_bytes as u64).saturating_mul(3))
    }
}

/// Writes an answer.
pub trait Encode: Send {
    /// What can be said before the first byte: asked once, after the outputs are there and before the first [`Encode::step`].
    /// Fails when an output cannot be written in this format.
    fn head(&mut self, from: &dyn TensorSource) -> Result<EncodedHead>;

    /// Writes the next bytes into `out` and returns how many; 0 (with a non-empty `out`) means that all are written.
    fn step(&mut self, from: &dyn TensorSource, out: &mut [u8]) -> Result<usize>;
}

/// What is known of an encoded answer before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodedHead {
    /// The media type, e.g. `application/json`.
    pub media_type: &'static str,
    /// Bytes of the leading description when raw tensors follow it.
    pub description_length: Option<usize>,
    /// Bytes in all, if known ahead.
    pub length: Option<usize>,
}

/// The memory of one request while it is decoded: its body, and room for its tensors in the tenant's domain.
pub trait TensorSink {
    /// The body: as received, or as unpacked after [`TensorSink::unpack_finish`].
    fn body(&self) -> &[u8];

    /// Ensures room for `capacity` unpacked bytes, keeping those written so far. Fails with the tenant's memory refusal.
    fn unpack_reserve(&mut self, capacity: usize) -> Result<()>;

    /// The packed body and the whole room for unpacked bytes.
    fn unpack_room(&mut self) -> (&[u8], &mut [u8]);

    /// Makes the first `length` unpacked bytes the body and gives the packed one back. Fails if there is not so much room.
    fn unpack_finish(&mut self, length: usize) -> Result<()>;

    /// A new piece of `bytes` bytes, aligned to 64 and zeroed of others' data. Fails with the tenant's memory refusal.
    fn reserve(&mut self, bytes: usize) -> Result<TensorSlot>;

    /// Uses `range` of the body as a tensor in place. Fails if it is not within the body.
    fn adopt(&mut self, range: Range<usize>) -> Result<TensorSlot>;

    /// The body to read from and the piece in `slot` to write to. Adopted and foreign slots give an empty piece.
    fn body_and_slot(&mut self, slot: TensorSlot) -> (&[u8], &mut [u8]);

    /// The bytes in `slot`, or of the adopted range.
    fn slot(&self, slot: TensorSlot) -> &[u8];

    /// Shortens the reserved piece in `slot` to its first `bytes` bytes (for BYTES tensors, whose size is known last).
    fn truncate(&mut self, slot: TensorSlot, bytes: usize) -> Result<()>;
}

/// One output of a finished request.
#[derive(Debug, Clone, Copy)]
pub struct OutputTensor<'a> {
    /// The output's name.
    pub name: &'a str,
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: &'a Shape,
    /// Row-major, little-endian.
    pub bytes: &'a [u8],
}

/// The outputs of a finished request, open for reading during one step.
pub trait TensorSource {
    /// The name by which the tenant called the model.
    fn model_name(&self) -> &str;

    /// The version that answered.
    fn model_version(&self) -> u32;

    /// The outputs wanted, in the order they were asked for.
    fn outputs(&self) -> usize;

    /// Output number `index` of those wanted; `None` past the end.
    fn output(&self, index: usize) -> Option<OutputTensor<'_>>;
}
