//! A request's memory made of vectors, and the driving of a decoder over it in steps of any size. It holds the decoder to the
//! sink's rules: it refuses what is out of range instead of panicking, and counts what is reserved.

use std::ops::Range;
use std::sync::Arc;

use insula_api::{ContentEncoding, RequestFormat, decoder};
use insula_core::codec::DECODE_STEP_BYTES;
use insula_core::{CheckedRequest, Error, ModelSignature, Refusal, Result, TensorSink, TensorSlot};

/// The most bytes that one sink hands out.
pub const MEMORY_LIMIT: usize = 256 << 20;

enum Piece {
    Reserved(Vec<u8>),
    Adopted(Range<usize>),
}

/// A sink over vectors.
pub struct MemorySink {
    packed: Vec<u8>,
    unpacked: Vec<u8>,
    is_unpacked: bool,
    pieces: Vec<Piece>,
    /// The most bytes that were reserved at one time.
    pub peak: usize,
}

impl MemorySink {
    pub fn new(body: &[u8]) -> MemorySink {
        MemorySink { packed: body.to_vec(), unpacked: Vec::new(), is_unpacked: false, pieces: Vec::new(), peak: 0 }
    }

    fn used(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Reserved(bytes) => bytes.len(),
            Piece::Adopted(_) => 0,
        });
        self.unpacked.len() + pieces.sum::<usize>()
    }

    fn admit(&mut self, bytes: usize) -> Result<()> {
        let used = self.used().saturating_add(bytes);
        if used <= MEMORY_LIMIT {
            self.peak = self.peak.max(used);
            return Ok(());
        }
        let refusal = Refusal {
            limit: "memory",
            value: MEMORY_LIMIT as f64,
            used: used as f64,
            window: Default::default(),
            retry_after: Default::default(),
        };
        Err(Error::quota("the tenant's memory is used up", refusal))
    }
}

impl TensorSink for MemorySink {
    fn body(&self) -> &[u8] {
        if self.is_unpacked { &self.unpacked } else { &self.packed }
    }

    fn unpack_reserve(&mut self, capacity: usize) -> Result<()> {
        self.admit(capacity.saturating_sub(self.unpacked.len()))?;
        self.unpacked.resize(capacity.max(self.unpacked.len()), 0xaa);
        Ok(())
    }

    fn unpack_room(&mut self) -> (&[u8], &mut [u8]) {
        (&self.packed, &mut self.unpacked)
    }

    fn unpack_finish(&mut self, length: usize) -> Result<()> {
        if length > self.unpacked.len() {
            return Err(Error::internal("more was unpacked than there is room for", String::new()));
        }
        self.unpacked.truncate(length);
        self.packed = Vec::new();
        self.is_unpacked = true;
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> Result<TensorSlot> {
        self.admit(bytes)?;
        self.pieces.push(Piece::Reserved(vec![0; bytes]));
        Ok(TensorSlot(self.pieces.len() as u32 - 1))
    }

    fn adopt(&mut self, range: Range<usize>) -> Result<TensorSlot> {
        if self.body().get(range.clone()).is_none() {
            return Err(Error::internal("a range outside the body was adopted", format!("{range:?}")));
        }
        self.pieces.push(Piece::Adopted(range));
        Ok(TensorSlot(self.pieces.len() as u32 - 1))
    }

    fn body_and_slot(&mut self, slot: TensorSlot) -> (&[u8], &mut [u8]) {
        let body = if self.is_unpacked { &self.unpacked } else { &self.packed };
        match self.pieces.get_mut(slot.0 as usize) {
            Some(Piece::Reserved(bytes)) => (body, bytes),
            _ => (body, &mut []),
        }
    }

    fn slot(&self, slot: TensorSlot) -> &[u8] {
        match &self.pieces[slot.0 as usize] {
            Piece::Reserved(bytes) => bytes,
            Piece::Adopted(range) => &self.body()[range.clone()],
        }
    }

    fn truncate(&mut self, slot: TensorSlot, bytes: usize) -> Result<()> {
        match &mut self.pieces[slot.0 as usize] {
            Piece::Reserved(piece) if bytes <= piece.len() => {
                piece.truncate(bytes);
                Ok(())
            }
            _ => Err(Error::internal("a piece was shortened to more than it has", String::new())),
        }
    }
}

/// A decoded request and its memory.
pub struct Decoded {
    pub request: CheckedRequest,
    pub sink: MemorySink,
    pub steps: usize,
}

impl Decoded {
    /// The bytes of the model's input number `input`.
    pub fn bytes(&self, input: usize) -> &[u8] {
        self.sink.slot(self.request.inputs()[input].slot())
    }
}

/// Decodes `body` in steps of `budget` bytes.
pub fn decode_packed(
    format: RequestFormat,
    encoding: ContentEncoding,
    signature: &Arc<ModelSignature>,
    limit: usize,
    body: &[u8],
    budget: usize,
) -> Result<Decoded> {
    let mut sink = MemorySink::new(body);
    let mut decoder = decoder(format, encoding, signature.clone(), limit);
    // every step makes progress: each byte of the body and of what it unpacks to is passed at most three times
    let most = 16 + 3 * (body.len() + if encoding == ContentEncoding::Identity { 0 } else { limit });
    for steps in 1..=most {
        if let Some(request) = decoder.step(&mut sink, budget)? {
            return Ok(Decoded { request, sink, steps });
        }
    }
    panic!("the decoder made no progress in {most} steps of {budget}");
}

/// Decodes a JSON body in the largest steps.
pub fn decode_json(signature: &Arc<ModelSignature>, body: &str) -> Result<Decoded> {
    let encoding = ContentEncoding::Identity;
    decode_packed(RequestFormat::Json, encoding, signature, 0, body.as_bytes(), DECODE_STEP_BYTES)
}

/// Decodes a body of `description` and `tail`.
pub fn decode_binary(signature: &Arc<ModelSignature>, description: &str, tail: &[u8]) -> Result<Decoded> {
    let format = RequestFormat::Binary { description_length: description.len() };
    let body = [description.as_bytes(), tail].concat();
    decode_packed(format, ContentEncoding::Identity, signature, 0, &body, DECODE_STEP_BYTES)
}
