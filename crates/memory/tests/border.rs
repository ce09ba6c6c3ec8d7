//! What one tenant wrote never shows to another, over real mappings and with domains that come and go.
#![cfg(not(miri))]

use std::sync::Arc;

use insula_core::Nanos;
use insula_memory::{Domain, HostBudget, Lease, Reaper};

#[path = "support/real_domain.rs"]
mod real_domain;

const PATTERN: u8 = 0xA7;

/// Leases all that `domain` has, in pieces of `size` bytes.
fn all_of(domain: &Arc<Domain>, size: usize) -> Vec<Lease> {
    std::iter::from_fn(|| domain.lease(size).ok()).collect()
}

fn count(leases: &[Lease]) -> usize {
    leases.iter().map(|lease| lease.as_slice().iter().filter(|byte| **byte == PATTERN).count()).sum()
}

#[test]
fn one_tenants_pattern_shows_in_none_of_anothers_bytes() {
    let (reaper, budget) = (Reaper::inline(), HostBudget::new(u64::MAX));
    let first = real_domain::domain("a", 8 << 20, &budget, &reaper);
    let second = real_domain::domain("b", 8 << 20, &budget, &reaper);
    for size in [512, 40_000, 4 << 20] {
        let mut written = all_of(&first, size);
        written.iter_mut().for_each(|lease| lease.as_mut_slice().fill(PATTERN));
        assert!(count(&written) > 4 << 20);
        assert_eq!(count(&all_of(&second, size)), 0);
        drop(written);
        assert_eq!(count(&all_of(&second, size)), 0);
        assert_ne!(count(&all_of(&first, size)), 0, "before the scrub a tenant finds its own data");
        first.scrub(usize::MAX);
        assert_eq!(count(&all_of(&first, size)), 0);
    }
}

#[test]
fn domains_that_come_and_go_leave_nothing_to_those_that_follow() {
    let (reaper, budget) = (Reaper::start().unwrap(), HostBudget::new(u64::MAX));
    for round in 0..20 {
        let domain = real_domain::domain("guest", 8 << 20, &budget, &reaper);
        let mut leases = all_of(&domain, 1 << 20);
        assert_eq!((leases.len(), count(&leases)), (8, 0), "round {round}");
        leases.iter_mut().for_each(|lease| lease.as_mut_slice().fill(PATTERN));
        domain.close(Nanos(round));
    }
    reaper.stop();
    assert_eq!(budget.usage().used, 0);
}
