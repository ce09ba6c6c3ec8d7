//! A worker's scratch memory: where plans keep what lies between their steps. It belongs to no tenant and is counted in the
//! server's budget; that a step reads only what the plan has written is the plan's to prove. Workers own one or two.

use std::sync::Arc;

use insula_core::{Error, Result};

use crate::backing::{Backing, Window};
use crate::budget::{BudgetShare, HostBudget};
use crate::geometry::ARENA_BYTES;

/// What [`Scratch::poison`] fills with: as a float it is a large negative number that spreads through sums and shows.
pub const POISON: u8 = 0xDB;

/// A worker's arena.
#[derive(Debug)]
pub struct Scratch {
    backing: Arc<dyn Backing>,
    /// `None` while it has no memory.
    window: Option<Window>,
    share: BudgetShare,
    length: usize,
    numa_node: Option<u32>,
}

impl Scratch {
    /// Scratch memory without a byte yet, for a worker of `numa_node`. Fails when the host cannot reach the backing's memory.
    pub fn new(backing: Arc<dyn Backing>, budget: &Arc<HostBudget>, numa_node: Option<u32>) -> Result<Scratch> {
        if !backing.host_accessible() {
            return Err(Error::internal("a worker's scratch needs host memory", format!("{backing:?}")));
        }
        Ok(Scratch { backing, window: None, share: budget.reserve(0)?, length: 0, numa_node })
    }

    /// Makes it at least `bytes` bytes long, in whole arenas. Nothing of what it held is kept when it grows: its memory is new,
    /// and zero. Fails, leaving it as it was, when the budget or the system has no more.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        if bytes <= self.length {
            return Ok(());
        }
        let gaps = 2 * ARENA_BYTES;
        let sizes =
            bytes.checked_next_multiple_of(ARENA_BYTES).and_then(|length| Some((length, length.checked_add(gaps)?)));
        let Some((length, reserved)) = sizes else {
            return Err(Error::internal("a worker's scratch could not grow", format!("{bytes} bytes were asked for")));
        };
        self.share.grow((length - self.length) as u64)?;
        match self.map(length, reserved) {
            Ok(window) => {
                let before = self.window.replace(window);
                self.length = length;
                before.into_iter().for_each(|window| self.backing.release(window));
                Ok(())
            }
            Err(error) => {
                self.share.shrink((length - self.length) as u64);
                Err(error)
            }
        }
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The memory: page-aligned, a multiple of 2 MiB, with closed addresses before and behind it.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let address = self.window.as_ref().and_then(|window| window.address(&(ARENA_BYTES..ARENA_BYTES + self.length)));
        match address {
            // SAFETY: these bytes were committed (and so are initialised) in `map`, stay until `self` is changed or dropped, and
            // are reached through `self` only, which is borrowed mutably.
            Some(address) => unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), self.length) },
            None => &mut [],
        }
    }

    /// Fills it with [`POISON`], so that a step that reads what no step wrote shows. For debug builds, between batches.
    pub fn poison(&mut self) {
        self.as_mut_slice().fill(POISON);
    }

    fn map(&self, length: usize, reserved: usize) -> Result<Window> {
        let window = self.backing.reserve(reserved, self.numa_node)?;
        match self.backing.commit(&window, ARENA_BYTES..ARENA_BYTES + length) {
            Ok(()) => Ok(window),
            Err(error) => {
                self.backing.release(window);
                Err(error)
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.window.take().into_iter().for_each(|window| self.backing.release(window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backing::heap::HeapBacking;
    use insula_core::Code;

    fn scratch(budget: &Arc<HostBudget>) -> Scratch {
        Scratch::new(Arc::new(HeapBacking::default()), budget, None).unwrap()
    }

    #[test]
    fn it_grows_within_the_budget_and_gives_everything_back() {
        let budget = HostBudget::new(6 << 20);
        let mut scratch = scratch(&budget);
        assert!(scratch.is_empty() && scratch.as_mut_slice().is_empty());
        scratch.grow(1).unwrap();
        assert_eq!((scratch.len(), budget.usage().used), (2 << 20, 2 << 20));
        scratch.grow(3 << 20).unwrap();
        assert_eq!((scratch.as_mut_slice().len(), budget.usage().used), (4 << 20, 4 << 20));
        let error = scratch.grow(7 << 20).unwrap_err();
        assert_eq!((error.code(), scratch.len()), (Code::Unavailable, 4 << 20));
        assert!(scratch.grow(usize::MAX).is_err());
        drop(scratch);
        assert_eq!(budget.usage().used, 0);
    }

    #[test]
    fn poison_reaches_every_byte() {
        let mut scratch = scratch(&HostBudget::new(u64::MAX));
        scratch.grow(5).unwrap();
        assert!(scratch.as_mut_slice().iter().all(|byte| *byte == 0));
        scratch.poison();
        assert!(scratch.as_mut_slice().iter().all(|byte| *byte == POISON));
        assert!(f32::from_ne_bytes([POISON; 4]) < -1e17);
    }

    #[test]
    fn a_system_without_memory_leaves_it_as_it_was() {
        let budget = HostBudget::new(u64::MAX);
        let backing = Arc::new(HeapBacking::default());
        let mut scratch = Scratch::new(Arc::clone(&backing) as Arc<dyn Backing>, &budget, None).unwrap();
        scratch.grow(1).unwrap();
        *backing.commits_left.lock() = Some(0);
        assert!(scratch.grow(3 << 20).is_err());
        assert_eq!((scratch.len(), budget.usage().used), (2 << 20, 2 << 20));
    }
}
