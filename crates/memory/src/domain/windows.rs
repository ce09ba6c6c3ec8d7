//! The windows of a domain and what is done to their memory: the parts that take system calls or zero bytes, called with the
//! windows' lock held and the domain's own lock free. Translates the domain's offsets to windows. The domain and the reaper
//! call it.

use std::ops::Range;
use std::ptr::NonNull;

use insula_core::Result;
use smallvec::SmallVec;

use crate::allocator::DirtyPiece;
use crate::backing::{Backing, Window};
use crate::refusal;

/// The windows, each with where it begins in the domain.
#[derive(Debug, Default)]
pub(crate) struct Windows(Vec<(u64, Window)>);

impl Windows {
    /// Adds `window`, which begins at `offset` of the domain.
    pub(crate) fn add(&mut self, offset: u64, window: Window) {
        self.0.push((offset, window));
    }

    /// Commits `bytes` bytes at `offset`.
    pub(crate) fn commit(&self, backing: &dyn Backing, offset: u64, bytes: u64) -> Result<()> {
        let (window, range) = self.find(&(offset..offset + bytes))?;
        backing.commit(window, range)
    }

    /// Gives `bytes` bytes at `offset` back.
    pub(crate) fn decommit(&self, backing: &dyn Backing, offset: u64, bytes: u64) -> Result<()> {
        let (window, range) = self.find(&(offset..offset + bytes))?;
        backing.decommit(window, range)
    }

    /// Zeroes a dirty piece.
    pub(crate) fn scrub(&self, backing: &dyn Backing, piece: &DirtyPiece) {
        for range in piece.ranges() {
            match self.find(&range) {
                Ok((window, range)) => backing.scrub(window, range),
                Err(error) => tracing::error!(?error, "a dirty piece of a domain could not be scrubbed"),
            }
        }
    }

    /// Gives all windows back to the backing.
    pub(crate) fn release(&mut self, backing: &dyn Backing) {
        for (_, window) in self.0.drain(..) {
            backing.release(window);
        }
    }

    fn find(&self, range: &Range<u64>) -> Result<(&Window, Range<usize>)> {
        let found = self.0.iter().find_map(|(offset, window)| {
            let local = local_range(range, *offset, window.bytes())?;
            Some((window, local))
        });
        found.ok_or_else(|| refusal::outside_windows(format!("{range:?} is in no window")))
    }
}

/// The windows' addresses, without the right to do anything to them but to lease what the allocator says.
#[derive(Debug, Default)]
pub(crate) struct AddressMap(SmallVec<[(u64, NonNull<u8>, usize); 1]>);

// SAFETY: it holds addresses only; what lies there is governed by the allocator beside which it stands.
unsafe impl Send for AddressMap {}

impl AddressMap {
    /// Adds the addresses of `window`, which begins at `offset` of the domain.
    pub(crate) fn add(&mut self, offset: u64, window: &Window) {
        self.0.push((offset, window.start(), window.bytes()));
    }

    /// The address of byte `range.start` of the domain; `None` when `range` is not within one window.
    pub(crate) fn address(&self, range: &Range<u64>) -> Option<NonNull<u8>> {
        self.0.iter().find_map(|(offset, start, bytes)| {
            let local = local_range(range, *offset, *bytes)?;
            // SAFETY: the offset is within the window, whose addresses `start` reaches by arithmetic.
            Some(unsafe { start.add(local.start) })
        })
    }
}

/// `range` of the domain as a range of a window of `bytes` bytes that begins at `offset`, if it is within it.
fn local_range(range: &Range<u64>, offset: u64, bytes: usize) -> Option<Range<usize>> {
    let start = usize::try_from(range.start.checked_sub(offset)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(offset)?).ok()?;
    (start <= end && end <= bytes).then_some(start..end)
}
