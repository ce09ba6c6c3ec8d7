//! The server's memory budget: one count that domain pages, weights, plans, worker arenas and connection buffers are all
//! reserved from before they are taken. It allocates nothing itself. Everyone who holds much memory calls it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use insula_core::Result;

use crate::refusal;

/// How many bytes the server may use, and how many it uses.
#[derive(Debug)]
pub struct HostBudget {
    limit: u64,
    used: AtomicU64,
    high_water: AtomicU64,
}

/// A budget at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUsage {
    /// Bytes that may be used.
    pub limit: u64,
    /// Bytes reserved.
    pub used: u64,
    /// The most bytes that were ever reserved at once.
    pub high_water: u64,
}

impl HostBudget {
    /// A budget of `bytes` bytes.
    pub fn new(bytes: u64) -> Arc<HostBudget> {
        Arc::new(HostBudget { limit: bytes, used: AtomicU64::new(0), high_water: AtomicU64::new(0) })
    }

    /// Reserves `bytes` bytes until the share is dropped. Fails with [`insula_core::Code::Unavailable`], limit `server_memory`,
    /// when so many are not left.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<BudgetShare> {
        let mut share = BudgetShare { budget: Arc::clone(self), bytes: 0 };
        share.grow(bytes)?;
        Ok(share)
    }

    /// The figures now.
    pub fn usage(&self) -> BudgetUsage {
        let used = self.used.load(Ordering::Relaxed);
        BudgetUsage { limit: self.limit, used, high_water: self.high_water.load(Ordering::Relaxed).max(used) }
    }

    fn add(&self, bytes: u64) -> Result<()> {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        match self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits) {
            Ok(before) => {
                self.high_water.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => Err(refusal::server_memory(bytes, used, self.limit)),
        }
    }
}

/// Bytes reserved from a budget. They go back when it is dropped.
#[derive(Debug)]
#[must_use = "the bytes go back when the share is dropped"]
pub struct BudgetShare {
    budget: Arc<HostBudget>,
    bytes: u64,
}

impl BudgetShare {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reserves `bytes` more. When that fails the share is as it was.
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        self.budget.add(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives `bytes` of it back (all, if it has fewer).
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Moves all of it into a new share.
    pub(crate) fn take(&mut self) -> BudgetShare {
        BudgetShare { budget: Arc::clone(&self.budget), bytes: std::mem::take(&mut self.bytes) }
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insula_core::Code;

    #[test]
    fn what_is_over_the_budget_is_refused_with_the_figures() {
        let budget = HostBudget::new(1000);
        let share = budget.reserve(900).unwrap();
        let error = budget.reserve(101).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        let refusal = error.refusal().unwrap();
        assert_eq!((refusal.limit, refusal.value, refusal.used), ("server_memory", 1000.0, 900.0));
        assert!(error.message().contains("101") && error.message().contains("900 of 1000"), "{error}");
        assert!(budget.reserve(u64::MAX).is_err());
        drop(share);
        assert_eq!(budget.usage(), BudgetUsage { limit: 1000, used: 0, high_water: 900 });
    }

    #[test]
    fn a_share_grows_and_shrinks_and_gives_everything_back_once() {
        let budget = HostBudget::new(1000);
        let mut share = budget.reserve(0).unwrap();
        share.grow(600).unwrap();
        assert!(share.grow(401).is_err());
        share.shrink(100);
        let moved = share.take();
        drop(share);
        assert_eq!((moved.bytes(), budget.usage().used), (500, 500));
        drop(moved);
        assert_eq!(budget.usage().used, 0);
    }

    #[test]
    fn many_threads_together_never_get_more_than_the_budget() {
        let budget = HostBudget::new(100);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
                        let held = budget.reserve(40);
                        assert!(budget.usage().used <= 100);
                        drop(held);
                    }
                });
            }
        });
        let usage = budget.usage();
        assert_eq!((usage.used, usage.high_water <= 80), (0, true));
    }
}
