//! A domain: one tenant's memory on the host. It leases pieces of its own windows and of nothing else, holds the tenant's
//! limit, and outlives its owner until the last lease has come back. It never hands a piece to another domain: memory leaves
//! it zeroed, through the backing. The tenant's actor owns it, requests lease from it, the reaper ends it.

mod growth;
pub(crate) mod windows;

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use insula_core::{Error, Nanos, Result};
use parking_lot::Mutex;

use crate::allocator::address_space::AddressSpace;
use crate::allocator::{Allocator, Block, Shortage};
use crate::backing::Backing;
use crate::budget::{BudgetShare, HostBudget};
use crate::geometry::arenas_for;
use crate::lease::Lease;
use crate::reaper::{Reaper, ReaperQueue, Remains};
use crate::refusal;
use windows::{AddressMap, Windows};

/// When memory that came back to a domain is zeroed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scrub {
    /// By [`Domain::scrub`], which the tenant's loop calls when idle. Until then the same tenant may be given it again as it is.
    Lazy,
    /// Before it is leased again, and by [`Domain::scrub`].
    Now,
    /// Never, not even when the domain ends. For tests that must be able to find what was left, and to measure.
    Off,
}

/// What a domain is made with.
#[derive(Debug, Clone)]
pub struct DomainSettings {
    /// Names the domain in reports (the tenant's id).
    pub label: String,
    /// The most bytes that may be leased at once. Memory is committed up to this, rounded up to an arena.
    pub limit: u64,
    /// The home node.
    pub numa_node: Option<u32>,
    /// When freed memory is zeroed.
    pub scrub: Scrub,
}

/// Where a domain is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Leases.
    Open,
    /// Leases nothing new; some leases are still out.
    Closed,
    /// Nothing is out: the windows are the reaper's.
    Reaped,
}

/// A domain at one moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainUsage {
    /// Where it is in its life.
    pub life: Life,
    /// The most that may be leased.
    pub limit: u64,
    /// Leased.
    pub in_use: u64,
    /// The most that was ever leased at once.
    pub high_water: u64,
    /// Free and not yet scrubbed.
    pub dirty: u64,
    /// Committed: leased or free, with memory behind it once touched.
    pub committed: u64,
    /// How many leases are out.
    pub leases: u64,
}

/// A tenant's memory on the host.
pub struct Domain {
    label: String,
    scrub: Scrub,
    numa_node: Option<u32>,
    backing: Arc<dyn Backing>,
    reaper: Arc<ReaperQueue>,
    /// Mirrors `State::life` for those who only look.
    closed: AtomicBool,
    /// Held to commit, give back and scrub. Taken before `state`, never while holding it.
    windows: Mutex<Windows>,
    state: Mutex<State>,
}

struct State {
    life: Life,
    allocator: Allocator,
    addresses: AddressMap,
    share: BudgetShare,
}

/// Why a lease was not given at once. Turned into an error when the lock is free again.
enum Refused {
    /// So many arenas must be committed first.
    Room(u32),
    Limit {
        in_use: u64,
        limit: u64,
    },
    Closed,
    /// The allocator gave out what lies in no window.
    OutsideWindows(Range<u64>),
}

impl Domain {
    /// A domain with its addresses reserved and no memory yet. Fails when the system has no addresses left.
    pub fn new(
        settings: DomainSettings,
        backing: Arc<dyn Backing>,
        budget: &Arc<HostBudget>,
        reaper: &Reaper,
    ) -> Result<Arc<Domain>> {
        let DomainSettings { label, limit, numa_node, scrub } = settings;
        if !backing.host_accessible() {
            return Err(Error::internal("a host domain needs host memory", format!("domain {label} on {backing:?}")));
        }
        let allocator = Allocator::new(limit);
        let state = State { life: Life::Open, allocator, addresses: AddressMap::default(), share: budget.reserve(0)? };
        let domain = Domain {
            label,
            scrub,
            numa_node,
            backing,
            reaper: reaper.queue(),
            closed: AtomicBool::new(false),
            windows: Mutex::default(),
            state: Mutex::new(state),
        };
        // the budget bounds what can ever be committed; more addresses are reserved if the limit is raised
        let arenas = u32::try_from(arenas_for(limit.min(budget.usage().limit))).unwrap_or(u32::MAX);
        domain.add_window(&mut domain.windows.lock(), AddressSpace::window_slots(arenas))?;
        Ok(Arc::new(domain))
    }

    /// Leases `bytes` bytes, aligned to 64. They hold nothing of anybody else's. Fails with the tenant's `memory` refusal, with
    /// `server_memory` when the host's budget is used up, with `tenant_deleted` when the domain is closed.
    pub fn lease(self: &Arc<Self>, bytes: usize) -> Result<Lease> {
        let taken = self.state.lock().take(bytes);
        let (block, address) = match taken {
            Ok(taken) => taken,
            Err(Refused::Room(_)) => self.take_slowly(bytes)?,
            Err(refused) => return Err(refused.into_error(bytes)),
        };
        let stale = usize::try_from(block.stale).unwrap_or(usize::MAX).min(bytes);
        let mut lease = Lease::new(Arc::clone(self), block, address, bytes);
        if stale != 0 && self.scrub == Scrub::Now {
            lease.as_mut_slice()[..stale].fill(0);
        }
        Ok(lease)
    }

    /// Fails with `tenant_deleted` once the domain is closed. For work that holds a lease and must not go on: cheap.
    pub fn ensure_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(refusal::tenant_deleted()) } else { Ok(()) }
    }

    /// Zeroes about `max_bytes` of what came back (pieces of up to 256 KiB are not cut), and gives memory back that is over a
    /// lowered limit. Returns how many bytes were zeroed: fewer than asked when nothing is left. For the tenant's own loop.
    pub fn scrub(&self, max_bytes: usize) -> usize {
        self.retire_excess();
        let mut scrubbed = 0;
        while self.scrub != Scrub::Off && scrubbed < max_bytes {
            match self.scrub_piece() {
                0 => break,
                bytes => scrubbed += bytes,
            }
        }
        scrubbed
    }

    /// Sets the limit. Lowering it takes no lease away: new ones are refused until enough has come back.
    pub fn set_limit(&self, limit: u64) {
        self.state.lock().allocator.set_limit(limit);
        self.retire_excess();
    }

    /// The figures now.
    pub fn usage(&self) -> DomainUsage {
        let state = self.state.lock();
        let allocator = &state.allocator;
        DomainUsage {
            life: state.life,
            limit: allocator.limit(),
            in_use: allocator.in_use(),
            high_water: allocator.high_water(),
            dirty: allocator.dirty(),
            committed: allocator.committed(),
            leases: allocator.leases(),
        }
    }

    /// Closes the domain at time `now`: nothing new is leased, and when the last lease has come back (which may be at once) the
    /// reaper gets the windows. Closing twice changes nothing.
    pub fn close(self: &Arc<Self>, now: Nanos) {
        let mut state = self.state.lock();
        if state.life != Life::Open {
            return;
        }
        state.life = Life::Closed;
        self.closed.store(true, Ordering::Release);
        let ended = state.end_if_drained();
        drop(state);
        if ended {
            self.hand_over();
        } else {
            self.reaper.watch(self, now);
        }
    }

    /// The name in reports.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Takes a block back from its lease.
    pub(crate) fn give_back(&self, block: Block) {
        let mut state = self.state.lock();
        state.allocator.give(block);
        let ended = state.end_if_drained();
        drop(state);
        if ended {
            self.hand_over();
        }
    }

    /// Gives everything to the reaper. Called once, by whoever saw the life end.
    fn hand_over(&self) {
        // waits for a piece that is being scrubbed or a region in transit; both look at the life before they begin another
        let mut windows = self.windows.lock();
        let mut state = self.state.lock();
        let limit = state.allocator.limit();
        let remains = Remains {
            backing: Arc::clone(&self.backing),
            windows: std::mem::take(&mut *windows),
            allocator: std::mem::replace(&mut state.allocator, Allocator::new(limit)),
            share: state.share.take(),
            scrub: self.scrub,
        };
        state.addresses = AddressMap::default();
        drop(state);
        drop(windows);
        self.reaper.submit(remains);
    }
}

impl State {
    fn take(&mut self, bytes: usize) -> Result<(Block, NonNull<u8>), Refused> {
        if self.life != Life::Open {
            return Err(Refused::Closed);
        }
        let block = self.allocator.take(bytes).map_err(|shortage| match shortage {
            Shortage::Arenas(arenas) => Refused::Room(arenas),
            Shortage::Limit => Refused::Limit { in_use: self.allocator.in_use(), limit: self.allocator.limit() },
        })?;
        let range = block.offset..block.offset + block.charge;
        match self.addresses.address(&range) {
            Some(address) => Ok((block, address)),
            None => {
                self.allocator.give(block);
                Err(Refused::OutsideWindows(range))
            }
        }
    }

    /// Marks a closed domain with no lease out as reaped. True for the one caller who is to hand it over.
    fn end_if_drained(&mut self) -> bool {
        let ended = self.life == Life::Closed && self.allocator.leases() == 0;
        if ended {
            self.life = Life::Reaped;
        }
        ended
    }
}

impl Refused {
    fn into_error(self, bytes: usize) -> Error {
        match self {
            Refused::Limit { in_use, limit } => refusal::memory(bytes, in_use, limit),
            Refused::Closed => refusal::tenant_deleted(),
            Refused::OutsideWindows(range) => refusal::outside_windows(format!("a block at {range:?}")),
            Refused::Room(arenas) => refusal::outside_windows(format!("{arenas} arenas that were not committed")),
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // no lease is out, or it would hold the domain
        if std::mem::replace(&mut self.state.get_mut().life, Life::Reaped) != Life::Reaped {
            self.hand_over();
        }
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("label", &self.label).field("usage", &self.usage()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
