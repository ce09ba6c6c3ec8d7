//! Where a domain's memory comes from: a device that reserves windows of addresses and puts memory behind parts of them. A
//! backing sees ranges, never tenants. Domains and scratch call it; `cpu` is here, others are injected at start.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;

use insula_core::Result;

pub mod cpu;
#[cfg(test)]
pub(crate) mod heap;

/// A device that hands out memory.
///
/// # Safety
///
/// Domains turn what a backing gives into slices, so whoever implements it promises: a window's addresses are its own until
/// it is released; committed ranges, if [`Backing::host_accessible`], can be read and written by any thread, are zero when
/// they have just been committed, and stay where they are until they are decommitted or released.
pub unsafe trait Backing: fmt::Debug + Send + Sync {
    /// Whether the host may read and write committed ranges through their addresses. Where it is false, addresses mean
    /// something to the device only, and no lease can be opened as a slice.
    fn host_accessible(&self) -> bool;

    /// Reserves `bytes` of addresses, a multiple of an arena and aligned to one, none of them accessible. Memory committed
    /// there should lie on `numa_node`; if that cannot be had, it lies elsewhere.
    fn reserve(&self, bytes: usize, numa_node: Option<u32>) -> Result<Window>;

    /// Makes `range` of the window (whole arenas) usable; it is zero.
    fn commit(&self, window: &Window, range: Range<usize>) -> Result<()>;

    /// Gives the memory of `range` (whole arenas, committed) back and closes its addresses. When it fails, the range is
    /// still committed.
    fn decommit(&self, window: &Window, range: Range<usize>) -> Result<()>;

    /// Zeroes `range`, which is committed and which nobody else uses at this time.
    fn scrub(&self, window: &Window, range: Range<usize>);

    /// Gives the whole window back, memory and addresses. What was written there must have been scrubbed.
    fn release(&self, window: Window);
}

/// Addresses reserved by a backing. Who holds it decides who may use its memory.
#[derive(Debug)]
pub struct Window {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a window is a range of addresses; what may be done through them, and by whom, is governed by its holder.
unsafe impl Send for Window {}
// SAFETY: as above; a shared window gives out addresses only.
unsafe impl Sync for Window {}

impl Window {
    /// A window of `bytes` addresses from `start` on.
    ///
    /// # Safety
    ///
    /// The addresses are the caller's to give away, and `start` may be moved to any of them by pointer arithmetic.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize) -> Window {
        Window { start, bytes }
    }

    /// The first address.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many addresses.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of byte number `range.start`; `None` when `range` is not within the window.
    pub fn address(&self, range: &Range<usize>) -> Option<NonNull<u8>> {
        if range.start > range.end || range.end > self.bytes {
            return None;
        }
        // SAFETY: the offset is within the window, whose addresses `start` reaches by arithmetic (see `new`).
        Some(unsafe { self.start.add(range.start) })
    }
}
