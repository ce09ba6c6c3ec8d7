//! The memory of one request while it is decoded and until it has run: its body and its tensors, all leases of one domain.
//! It implements the sink that decoders write to, and knows no format. Runtime makes it when a body has arrived.

use std::ops::Range;
use std::sync::Arc;

use insula_core::{Error, Result, TensorSink, TensorSlot};
use smallvec::SmallVec;

use crate::body::{BodyBuffer, FIRST_BYTES, Stored};
use crate::domain::Domain;
use crate::lease::Lease;
use crate::refusal;

/// A request's body and tensors.
///
/// Decoders that do not know how much a body unpacks to should ask [`TensorSink::unpack_reserve`] for one byte more than they
/// have written: the room at least doubles each time, up to the limit.
#[derive(Debug)]
pub struct RequestMemory {
    domain: Arc<Domain>,
    /// `None` once it has been given back.
    body: Option<Stored>,
    /// Where the body is being unpacked to.
    unpacked: Option<Lease>,
    unpacked_limit: u64,
    pieces: SmallVec<[Piece; 2]>,
}

#[derive(Debug)]
enum Piece {
    Leased(Lease),
    /// A range of the body.
    Adopted(Range<usize>),
}

impl RequestMemory {
    /// The memory of a request whose body has arrived, and which may unpack to `unpacked_limit` bytes. Fails when declared bytes
    /// are missing.
    pub fn new(body: BodyBuffer, unpacked_limit: u64) -> Result<RequestMemory> {
        let domain = Arc::clone(body.domain());
        let body = Some(body.finish()?);
        Ok(RequestMemory { domain, body, unpacked: None, unpacked_limit, pieces: SmallVec::new() })
    }

    /// The bytes of an input, for the run: what lies in `slot`.
    pub fn input_bytes(&self, slot: TensorSlot) -> &[u8] {
        match self.piece(slot) {
            Some(Piece::Leased(lease)) => lease.as_slice(),
            Some(Piece::Adopted(range)) => self.body().get(range.clone()).unwrap_or_default(),
            None => &[],
        }
    }

    /// Gives back what only the decoder needed: the room for unpacking, and the body if no tensor lies in it. To be called when
    /// decoding is done; the text of a JSON request is several times its tensors.
    pub fn finish_decoding(&mut self) {
        self.unpacked = None;
        if !self.pieces.iter().any(|piece| matches!(piece, Piece::Adopted(_))) {
            self.body = None;
        }
    }

    /// The domain all of it lies in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn piece(&self, slot: TensorSlot) -> Option<&Piece> {
        self.pieces.get(usize::try_from(slot.0).ok()?)
    }

    fn add(&mut self, piece: Piece) -> Result<TensorSlot> {
        let slot = u32::try_from(self.pieces.len()).map_err(|_| Error::invalid("the request has too many tensors"))?;
        self.pieces.push(piece);
        Ok(TensorSlot(slot))
    }
}

impl TensorSink for RequestMemory {
    fn body(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], Stored::bytes)
    }

    fn unpack_reserve(&mut self, capacity: usize) -> Result<()> {
        self.domain.ensure_open()?;
        if capacity as u64 > self.unpacked_limit {
            return Err(refusal::too_large("unpacked request body", capacity as u64, self.unpacked_limit));
        }
        let written = self.unpacked.as_ref().map_or(&[][..], Lease::as_slice);
        if self.unpacked.is_some() && written.len() >= capacity {
            return Ok(());
        }
        // doubled here, where the limit is known, so that decoders may ask for the next byte only
        let doubled = written.len().saturating_mul(2).max(FIRST_BYTES);
        let within = usize::try_from(self.unpacked_limit).unwrap_or(usize::MAX).min(doubled);
        let mut larger = self.domain.lease(capacity.max(within))?;
        larger.as_mut_slice()[..written.len()].copy_from_slice(written);
        self.unpacked = Some(larger);
        Ok(())
    }

    fn unpack_room(&mut self) -> (&[u8], &mut [u8]) {
        let body = self.body.as_ref().map_or(&[][..], Stored::bytes);
        (body, self.unpacked.as_mut().map_or(&mut [][..], Lease::as_mut_slice))
    }

    fn unpack_finish(&mut self, length: usize) -> Result<()> {
        let room = self.unpacked.as_ref().map_or(0, Lease::len);
        let adopted = self.pieces.iter().any(|piece| matches!(piece, Piece::Adopted(_)));
        if length > room || adopted {
            let detail = format!("{length} of {room} unpacked bytes, tensors in the packed body: {adopted}");
            return Err(Error::internal("the unpacked body could not be taken over", detail));
        }
        self.body = self.unpacked.take().map(|lease| Stored::new(lease, length));
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> Result<TensorSlot> {
        self.domain.ensure_open()?;
        let lease = self.domain.lease(bytes)?;
        self.add(Piece::Leased(lease))
    }

    fn adopt(&mut self, range: Range<usize>) -> Result<TensorSlot> {
        let length = self.body().len();
        if range.start > range.end || range.end > length {
            return Err(Error::invalid(format!(
                "a tensor is said to be bytes {} to {} of a body of {length} bytes",
                range.start, range.end
            )));
        }
        self.add(Piece::Adopted(range))
    }

    fn body_and_slot(&mut self, slot: TensorSlot) -> (&[u8], &mut [u8]) {
        let index = usize::try_from(slot.0).unwrap_or(usize::MAX);
        let piece = match self.pieces.get_mut(index) {
            Some(Piece::Leased(lease)) => lease.as_mut_slice(),
            Some(Piece::Adopted(_)) | None => &mut [],
        };
        (self.body.as_ref().map_or(&[], Stored::bytes), piece)
    }

    fn slot(&self, slot: TensorSlot) -> &[u8] {
        self.input_bytes(slot)
    }

    fn truncate(&mut self, slot: TensorSlot, bytes: usize) -> Result<()> {
        let index = usize::try_from(slot.0).unwrap_or(usize::MAX);
        match self.pieces.get_mut(index) {
            Some(Piece::Leased(lease)) if bytes <= lease.len() => {
                lease.truncate(bytes);
                Ok(())
            }
            other => {
                let detail = format!("{slot:?} to {bytes} bytes; it is {other:?}");
                Err(Error::internal("a tensor could not be shortened", detail))
            }
        }
    }
}

#[cfg(test)]
mod tests;
