//! The slow way of a domain: committing memory for a lease that finds no room, and giving free memory back. One thread of a
//! domain at a time does it, holding the windows' lock; leases that find room, and returns, go on beside it. A lease is
//! refused only here, when nothing is in transit that could have made room.

use std::ptr::NonNull;

use insula_core::Result;
use parking_lot::{Mutex, MutexGuard};

use super::windows::Windows;
use super::{Domain, Life, Refused, State};
use crate::allocator::regions::Transit;
use crate::allocator::{Block, CommitShortage};
use crate::geometry::ARENA_BYTES;
use crate::refusal;

impl Domain {
    /// Leases `bytes` bytes, making room if there is none.
    pub(super) fn take_slowly(&self, bytes: usize) -> Result<(Block, NonNull<u8>)> {
        let mut windows = self.windows.lock();
        loop {
            let mut state = self.state.lock();
            state.allocator.drain_reserves();
            let arenas = match state.take(bytes) {
                Ok(taken) => return Ok(taken),
                Err(Refused::Room(arenas)) => arenas,
                Err(refused) => {
                    drop(state);
                    return Err(refused.into_error(bytes));
                }
            };
            match state.allocator.begin_commit(arenas) {
                Ok(transit) => {
                    if let Err(error) = self.commit(&windows, state, transit) {
                        // memory of its own that lies idle may be what the server lacks
                        self.retire(&windows, arenas)?.ok_or(error)?;
                    }
                }
                Err(CommitShortage::Addresses(slots)) => {
                    drop(state);
                    self.add_window(&mut windows, slots)?;
                }
                Err(CommitShortage::Committed(excess)) => {
                    let (in_use, limit) = (state.allocator.in_use(), state.allocator.limit());
                    drop(state);
                    self.retire(&windows, excess)?.ok_or_else(|| refusal::fragmented(bytes, in_use, limit))?;
                }
            }
        }
    }

    /// Reserves a window of `slots` arenas' worth of addresses.
    pub(super) fn add_window(&self, windows: &mut Windows, slots: u32) -> Result<()> {
        let bytes = (slots as usize).saturating_mul(ARENA_BYTES);
        let window = self.backing.reserve(bytes, self.numa_node)?;
        let mut state = self.state.lock();
        match state.allocator.add_window(slots) {
            Some(offset) => {
                state.addresses.add(offset, &window);
                windows.add(offset, window);
                Ok(())
            }
            None => {
                drop(state);
                self.backing.release(window);
                Err(refusal::outside_windows("the domain's windows have no more numbers"))
            }
        }
    }

    /// Puts memory behind a region that has been set aside, if the server's budget allows.
    fn commit(&self, windows: &Windows, mut state: MutexGuard<'_, State>, transit: Transit) -> Result<()> {
        if let Err(error) = state.share.grow(transit.bytes) {
            state.allocator.finish_retire(transit);
            return Err(error);
        }
        drop(state);
        let committed = windows.commit(&*self.backing, transit.offset, transit.bytes);
        let mut state = self.state.lock();
        match committed {
            Ok(()) => state.allocator.finish_commit(transit),
            Err(_) => {
                state.share.shrink(transit.bytes);
                state.allocator.finish_retire(transit);
            }
        }
        committed
    }

    /// Gives one wholly free region back to the system, best one of `wanted` arenas. `None` when there is none.
    pub(super) fn retire(&self, windows: &Windows, wanted: u32) -> Result<Option<()>> {
        let retired = self.state.lock().allocator.begin_retire(wanted);
        let Some((transit, undo)) = retired else { return Ok(None) };
        let result = windows.decommit(&*self.backing, transit.offset, transit.bytes);
        let mut state = self.state.lock();
        match result {
            Ok(()) => {
                state.share.shrink(transit.bytes);
                state.allocator.finish_retire(transit);
                Ok(Some(()))
            }
            Err(error) => {
                state.allocator.undo_retire(transit, undo);
                Err(error)
            }
        }
    }

    /// Gives memory back that is committed beyond a limit that was lowered, as far as it is free.
    pub(super) fn retire_excess(&self) {
        let windows = self.windows.lock();
        loop {
            let state = self.state.lock();
            let excess = if state.life == Life::Reaped { 0 } else { state.allocator.excess_arenas() };
            drop(state);
            if excess == 0 {
                return;
            }
            match self.retire(&windows, excess) {
                Ok(Some(())) => {}
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(domain = %self.label, ?error, "free memory over the lowered limit stays for now");
                    return;
                }
            }
        }
    }

    /// Scrubs the next dirty piece; how many bytes, 0 when there is none.
    pub(super) fn scrub_piece(&self) -> usize {
        let windows = self.windows.lock();
        let piece = lock_unless_reaped(&self.state).and_then(|mut state| state.allocator.take_dirty());
        let Some(piece) = piece else { return 0 };
        windows.scrub(&*self.backing, &piece);
        let bytes = usize::try_from(piece.bytes).unwrap_or(usize::MAX);
        self.state.lock().allocator.give_clean(piece);
        // a lease that waits for this piece goes before the next one
        MutexGuard::unlock_fair(windows);
        bytes
    }
}

fn lock_unless_reaped(state: &Mutex<State>) -> Option<MutexGuard<'_, State>> {
    let state = state.lock();
    (state.life != Life::Reaped).then_some(state)
}
