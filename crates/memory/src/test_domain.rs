//! Domains on the heap for the unit tests: no mapping, so they run under Miri too.

use std::sync::Arc;

use insula_core::Nanos;

use crate::backing::heap::HeapBacking;
use crate::budget::HostBudget;
use crate::domain::{Domain, DomainSettings, Scrub};
use crate::reaper::Reaper;

pub(crate) const MIB: u64 = 1 << 20;

/// A device, a budget and a reaper, and domains made on them.
pub(crate) struct House {
    pub backing: Arc<HeapBacking>,
    pub budget: Arc<HostBudget>,
    pub reaper: Reaper,
}

impl House {
    pub(crate) fn new(budget: u64) -> House {
        House { backing: Arc::default(), budget: HostBudget::new(budget), reaper: Reaper::inline() }
    }

    pub(crate) fn domain(&self, label: &str, limit: u64, scrub: Scrub) -> Arc<Domain> {
        let settings = DomainSettings { label: label.into(), limit, numa_node: None, scrub };
        let backing = Arc::clone(&self.backing);
        Domain::new(settings, backing, &self.budget, &self.reaper).unwrap()
    }

    /// Ends `domain`, which nobody else may hold a lease of.
    pub(crate) fn end(&self, domain: Arc<Domain>) {
        domain.close(Nanos(0));
        drop(domain);
        assert_eq!(self.reaper.reap_pending(), 1);
    }
}

/// A domain of `limit` bytes alone in its house.
pub(crate) fn lone_domain(limit: u64) -> Arc<Domain> {
    House::new(u64::MAX).domain("acme-corp", limit, Scrub::Lazy)
}

pub(crate) fn count(bytes: &[u8], byte: u8) -> usize {
    bytes.iter().filter(|found| **found == byte).count()
}
