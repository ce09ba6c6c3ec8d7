//! What the system says of a domain's memory: closed until leased, resident only where touched, kept out of core dumps, and
//! gone when the domain has ended.
#![cfg(not(miri))]

use insula_core::Nanos;
use insula_memory::{ARENA_BYTES, CpuBacking, Domain, DomainSettings, HostBudget, Reaper, Scratch, Scrub};
use std::sync::Arc;

#[path = "support/real_domain.rs"]
mod real_domain;
use real_domain::mapping_of;

const LEASE: usize = 16 << 20;

fn resident_kib(mapping: &[String]) -> u64 {
    let line = mapping.iter().find_map(|line| line.strip_prefix("Rss:")).expect("a line on residence");
    line.trim().trim_end_matches(" kB").parse().expect("KiB")
}

#[test]
fn pages_become_resident_only_when_they_are_touched() {
    let reaper = Reaper::inline();
    let domain = real_domain::domain("a", 64 << 20, &HostBudget::new(u64::MAX), &reaper);
    let mut lease = domain.lease(LEASE).unwrap();
    let address = lease.as_slice().as_ptr().addr();
    assert!(address.is_multiple_of(ARENA_BYTES));
    assert_eq!(resident_kib(&mapping_of(address).unwrap()), 0);
    lease.as_mut_slice()[0] = 1;
    let resident = resident_kib(&mapping_of(address).unwrap());
    assert!((1..=2048).contains(&resident), "one page, small or huge, is resident: {resident} KiB");
}

#[test]
fn fresh_memory_is_zero_wherever_one_looks() {
    let reaper = Reaper::inline();
    let domain = real_domain::domain("a", 8 << 20, &HostBudget::new(u64::MAX), &reaper);
    for bytes in [300, 40_000, 3 << 20] {
        assert!(domain.lease(bytes).unwrap().as_slice().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn tenant_memory_stays_out_of_core_dumps_and_asks_for_huge_pages() {
    let reaper = Reaper::inline();
    let domain = real_domain::domain("a", 64 << 20, &HostBudget::new(u64::MAX), &reaper);
    let lease = domain.lease(3000).unwrap();
    let mapping = mapping_of(lease.as_slice().as_ptr().addr()).unwrap();
    let flags = mapping.iter().find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
    assert!(flags.split_whitespace().any(|flag| flag == "dd"), "no core dumps: {flags}");
    let has_huge_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists();
    assert!(!has_huge_pages || flags.split_whitespace().any(|flag| flag == "hg"), "huge pages: {flags}");
}

#[test]
fn an_arena_has_closed_addresses_on_both_sides() {
    let reaper = Reaper::inline();
    let domain = real_domain::domain("a", 64 << 20, &HostBudget::new(u64::MAX), &reaper);
    let leases: Vec<_> = (0..4).map(|_| domain.lease(ARENA_BYTES).unwrap()).collect();
    for lease in &leases {
        let start = lease.as_slice().as_ptr().addr();
        assert!(mapping_of(start).unwrap()[0].contains(" rw-p "));
        for outside in [start - 1, start + ARENA_BYTES] {
            assert!(mapping_of(outside).unwrap()[0].contains(" ---p "), "a gap is closed");
        }
    }
}

#[test]
fn a_node_that_does_not_exist_costs_a_warning_not_the_memory() {
    let reaper = Reaper::inline();
    for node in [0, 63, 5000, u32::MAX] {
        let settings = DomainSettings { label: "a".into(), limit: 1 << 20, numa_node: Some(node), scrub: Scrub::Lazy };
        let domain = Domain::new(settings, Arc::new(CpuBacking::new()), &HostBudget::new(u64::MAX), &reaper).unwrap();
        domain.lease(1000).unwrap().as_mut_slice().fill(1);
    }
}

#[test]
fn a_window_stays_mapped_while_a_lease_lives_and_is_gone_when_the_reaper_has_stopped() {
    let reaper = Reaper::start().unwrap();
    let budget = HostBudget::new(64 << 20);
    let domain = real_domain::domain("a", 64 << 20, &budget, &reaper);
    let mut lease = domain.lease(LEASE).unwrap();
    lease.as_mut_slice().fill(7);
    let address = lease.as_slice().as_ptr().addr();
    domain.close(Nanos(0));
    drop(domain);
    assert!(mapping_of(address).is_some());
    assert!(lease.as_slice().iter().all(|byte| *byte == 7));
    let (next, after) = (mapping_of(address).unwrap(), budget.usage().used);
    assert!(next[0].contains(" rw-p ") && after == LEASE as u64);
    drop(lease);
    reaper.stop();
    assert!(mapping_of(address).is_none_or(|mapping| !mapping[0].contains(" rw-p ") || resident_kib(&mapping) == 0));
    assert_eq!(budget.usage().used, 0);
}

#[test]
fn scratch_is_aligned_to_huge_pages_and_guarded() {
    let mut scratch = Scratch::new(Arc::new(CpuBacking::new()), &HostBudget::new(64 << 20), Some(0)).unwrap();
    scratch.grow(3 << 20).unwrap();
    scratch.as_mut_slice().fill(1);
    scratch.grow(5 << 20).unwrap();
    let slice = scratch.as_mut_slice();
    assert!(slice.iter().all(|byte| *byte == 0), "grown memory is new");
    let (start, end) = (slice.as_ptr().addr(), slice.as_ptr().addr() + slice.len());
    assert!(start.is_multiple_of(ARENA_BYTES) && slice.len() == 6 << 20);
    assert!(mapping_of(start - 1).unwrap()[0].contains(" ---p ") && mapping_of(end).unwrap()[0].contains(" ---p "));
}
