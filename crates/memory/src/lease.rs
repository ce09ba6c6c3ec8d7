//! A lease: a piece of one domain's memory, open to its holder alone. It keeps its domain alive, gives the piece back when
//! dropped, and is never copied or turned into a piece of another domain. Everything that touches tenants' bytes holds one.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::allocator::Block;
use crate::domain::Domain;

/// A piece of a domain.
pub struct Lease {
    domain: Arc<Domain>,
    /// `None` only while it is being dropped.
    block: Option<Block>,
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: a lease owns its bytes alone, as a box would; the address is not bound to a thread.
unsafe impl Send for Lease {}
// SAFETY: a shared lease gives out shared slices only.
unsafe impl Sync for Lease {}

impl Lease {
    /// The lease of `block`, which begins at `address`, of its first `length` bytes.
    pub(crate) fn new(domain: Arc<Domain>, block: Block, address: NonNull<u8>, length: usize) -> Lease {
        debug_assert!(length as u64 <= block.charge);
        Lease { domain, block: Some(block), address, length }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the block is committed and initialised over its length (zero, or bytes once written), the allocator gives it
        // to nobody else until it comes back, and the domain, which we hold, keeps its windows mapped as long as a lease is out.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.length) }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the lease is borrowed mutably, so this is the only slice.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.length) }
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Shortens the lease to its first `length` bytes; longer lengths change nothing. What it counts stays the same until it is
    /// dropped.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// The domain it is a piece of.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.domain.give_back(block);
        }
    }
}

impl fmt::Debug for Lease {
    /// Names the domain and the length, never the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("domain", &self.domain.label())
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
