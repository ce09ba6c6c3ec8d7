//! The body of a request as it comes from the socket: chunks are copied into a lease of the tenant's domain, the one copy in.
//! It knows lengths and limits, no format. The server's body reader writes it, through runtime.

use std::sync::Arc;

use insula_core::{Error, Result};

use crate::domain::Domain;
use crate::geometry::LINE_BYTES;
use crate::lease::Lease;
use crate::refusal;

/// How much a body of unknown length gets first.
pub(crate) const FIRST_BYTES: usize = 64 << 10;

/// Bytes in a lease, from a place in it on.
#[derive(Debug)]
pub(crate) struct Stored {
    lease: Lease,
    start: usize,
    length: usize,
}

impl Stored {
    /// The first `length` bytes of `lease` (all, if it has fewer).
    pub(crate) fn new(lease: Lease, length: usize) -> Stored {
        let length = length.min(lease.len());
        Stored { lease, start: 0, length }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.lease.as_slice().get(self.start..self.start + self.length).unwrap_or_default()
    }

    fn room(&self) -> usize {
        self.lease.len() - self.start - self.length
    }

    /// Appends `chunk`, for which there is room.
    fn append(&mut self, chunk: &[u8]) {
        let end = self.start + self.length;
        if let Some(room) = self.lease.as_mut_slice().get_mut(end..end + chunk.len()) {
            room.copy_from_slice(chunk);
            self.length += chunk.len();
        }
    }
}

/// A body that is being received.
#[derive(Debug)]
pub struct BodyBuffer {
    stored: Stored,
    declared: Option<usize>,
    limit: u64,
}

impl BodyBuffer {
    /// Room for a body of `length` bytes. It begins so that byte number `description_length` (where raw tensors start) lies on
    /// a multiple of 64. Fails when `length` is over `limit`, when the description is longer than the body, and as
    /// [`Domain::lease`] does.
    pub fn with_declared(
        domain: &Arc<Domain>,
        length: usize,
        description_length: Option<usize>,
        limit: u64,
    ) -> Result<BodyBuffer> {
        if length as u64 > limit {
            return Err(refusal::too_large("request body", length as u64, limit));
        }
        let description = description_length.unwrap_or(0);
        if description > length {
            return Err(Error::invalid(format!(
                "the description is said to have {description} bytes and the whole body {length}: correct \
                 Inference-Header-Content-Length"
            )));
        }
        let start = (LINE_BYTES - description % LINE_BYTES) % LINE_BYTES;
        let stored = Stored { lease: domain.lease(start.saturating_add(length))?, start, length: 0 };
        Ok(BodyBuffer { stored, declared: Some(length), limit })
    }

    /// Room for a body of unknown length of at most `limit` bytes: 64 KiB at first, doubled when it is full. Fails as
    /// [`Domain::lease`] does.
    pub fn growing(domain: &Arc<Domain>, limit: u64) -> Result<BodyBuffer> {
        let first = usize::try_from(limit).unwrap_or(usize::MAX).min(FIRST_BYTES);
        Ok(BodyBuffer { stored: Stored::new(domain.lease(first)?, 0), declared: None, limit })
    }

    /// Appends `chunk`. Fails, and changes nothing, when it goes over the declared length (invalid argument) or the limit
    /// (payload too large), when there is no memory to grow, and with `tenant_deleted` once the domain is closed.
    pub fn write(&mut self, chunk: &[u8]) -> Result<()> {
        self.stored.lease.domain().ensure_open()?;
        let length = self.stored.length.saturating_add(chunk.len());
        if let Some(declared) = self.declared
            && length > declared
        {
            return Err(Error::invalid(format!(
                "the body has at least {length} bytes, its declared length is {declared}"
            )));
        }
        if length as u64 > self.limit {
            return Err(refusal::too_large("request body", length as u64, self.limit));
        }
        if chunk.len() > self.stored.room() {
            self.grow(length)?;
        }
        self.stored.append(chunk);
        Ok(())
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        self.stored.bytes()
    }

    /// How many bytes were written.
    pub fn len(&self) -> usize {
        self.stored.length
    }

    /// Whether none were written.
    pub fn is_empty(&self) -> bool {
        self.stored.length == 0
    }

    /// Whether all declared bytes are there. A body of unknown length is complete at any time: its end is the transport's to say.
    pub fn is_complete(&self) -> bool {
        self.declared.is_none_or(|declared| declared == self.stored.length)
    }

    /// The domain the body lies in.
    pub fn domain(&self) -> &Arc<Domain> {
        self.stored.lease.domain()
    }

    /// What was received. Fails when declared bytes are missing.
    pub(crate) fn finish(self) -> Result<Stored> {
        match self.declared {
            Some(declared) if declared != self.stored.length => Err(Error::invalid(format!(
                "the body ended after {} bytes, its declared length is {declared}",
                self.stored.length
            ))),
            _ => Ok(self.stored),
        }
    }

    /// Moves what there is into a lease of at least `needed` bytes (which is within the limit).
    fn grow(&mut self, needed: usize) -> Result<()> {
        let doubled = self.stored.lease.len().saturating_mul(2).max(FIRST_BYTES);
        let within = usize::try_from(self.limit).unwrap_or(usize::MAX).min(doubled);
        let larger = self.stored.lease.domain().lease(needed.max(within))?;
        let mut moved = Stored::new(larger, 0);
        moved.append(self.stored.bytes());
        self.stored = moved;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
