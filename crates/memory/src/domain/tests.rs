//! Domains over heap memory: limits and who notices them, scrubbing inside and at the border, the life cycle, and what is left
//! when the system refuses.

use std::time::Duration;

use insula_core::{Code, Nanos};
use proptest::prelude::*;

use super::*;
use crate::geometry::ARENA_BYTES;
use crate::reaper::OverdueDomain;
use crate::test_config::cases;
use crate::test_domain::{House, MIB, count};

const PATTERN: u8 = 0xA7;

fn fill(domain: &Arc<Domain>, bytes: usize) -> Lease {
    let mut lease = domain.lease(bytes).unwrap();
    lease.as_mut_slice().fill(PATTERN);
    lease
}

/// Leases all of a domain of `limit` bytes in pieces of `size` and counts the pattern in them.
fn pattern_in_all(domain: &Arc<Domain>, size: usize) -> usize {
    let mut leases = Vec::new();
    while let Ok(lease) = domain.lease(size) {
        leases.push(lease);
    }
    assert!(!leases.is_empty());
    leases.iter().map(|lease| count(lease.as_slice(), PATTERN)).sum()
}

#[test]
fn a_tenant_at_its_limit_is_refused_with_the_figures_and_its_neighbour_notices_nothing() {
    let house = House::new(64 * MIB);
    let full = house.domain("full", MIB, Scrub::Lazy);
    let neighbour = house.domain("neighbour", MIB, Scrub::Lazy);
    let held = full.lease(900 << 10).unwrap();
    let before = neighbour.usage();
    let error = full.lease(200 << 10).unwrap_err();
    assert_eq!(error.code(), Code::QuotaExceeded);
    let refusal = error.refusal().unwrap();
    assert_eq!((refusal.limit, refusal.value, refusal.used), ("memory", 1_048_576.0, 921_600.0));
    assert_eq!((refusal.window, refusal.retry_after), (Duration::ZERO, Duration::from_millis(100)));
    assert!(error.message().contains("204800") && error.message().contains("921600 of 1048576"), "{error}");
    assert_eq!(neighbour.usage(), before);
    drop(neighbour.lease(1 << 20).unwrap());
    drop(held);
    drop(full.lease(200 << 10).unwrap());
}

#[test]
fn a_lease_larger_than_the_whole_limit_is_told_so() {
    let house = House::new(64 * MIB);
    let error = house.domain("small", MIB, Scrub::Lazy).lease(2 << 20).unwrap_err();
    assert!(error.message().contains("the limit is 1048576"), "{error}");
}

#[test]
fn a_used_up_server_refuses_until_others_give_back() {
    let house = House::new(4 * MIB);
    let a = house.domain("a", 4 * MIB, Scrub::Lazy);
    let b = house.domain("b", 4 * MIB, Scrub::Lazy);
    let held = [a.lease(2 << 20).unwrap(), a.lease(2 << 20).unwrap()];
    let error = b.lease(100).unwrap_err();
    assert_eq!((error.code(), error.refusal().unwrap().limit), (Code::Unavailable, "server_memory"));
    assert_eq!(b.usage().committed, 0);
    drop(held);
    assert_eq!(house.budget.usage().used, 4 * MIB, "free memory stays with its domain");
    house.end(a);
    drop(b.lease(100).unwrap());
}

#[test]
fn a_domain_gives_up_its_own_idle_memory_before_the_server_is_said_to_be_full() {
    let house = House::new(4 * MIB);
    let domain = house.domain("a", 64 * MIB, Scrub::Lazy);
    drop(domain.lease(4 << 20).unwrap());
    drop(domain.lease(100).unwrap());
    assert_eq!(house.budget.usage().used, 2 * MIB);
}

#[test]
fn freed_data_of_a_tenant_never_shows_again_once_it_is_scrubbed() {
    let sizes = [300, 5000, 40_000, 3 << 20];
    let run = |scrub: Scrub, size: usize| {
        let house = House::new(u64::MAX);
        let domain = house.domain("a", 8 * MIB, scrub);
        drop((0..2).map(|_| fill(&domain, size)).collect::<Vec<_>>());
        assert!(domain.usage().dirty >= 2 * size as u64);
        while domain.scrub(64 << 10) != 0 {}
        if scrub != Scrub::Off {
            assert_eq!(domain.usage().dirty, 0);
        }
        pattern_in_all(&domain, size)
    };
    for size in sizes {
        assert_eq!(run(Scrub::Lazy, size), 0);
        assert_eq!(run(Scrub::Now, size), 0);
        assert!(run(Scrub::Off, size) >= 2 * size, "without scrubbing the pattern must be found");
    }
}

#[test]
fn a_domain_that_scrubs_now_leases_only_zeros() {
    let house = House::new(u64::MAX);
    let run = |scrub| {
        let domain = house.domain("a", 8 * MIB, scrub);
        [300, 40_000, 3 << 20].map(|size| {
            drop(fill(&domain, size));
            count(domain.lease(size).unwrap().as_slice(), PATTERN)
        })
    };
    assert_eq!(run(Scrub::Now), [0, 0, 0]);
    assert_eq!(run(Scrub::Lazy), [300, 40_000, 3 << 20], "the same tenant may find its own data until it is scrubbed");
}

#[test]
fn nothing_of_an_ended_domain_shows_in_the_next_even_on_a_device_that_clears_nothing() {
    let run = |scrub: Scrub| {
        let house = House::new(u64::MAX);
        let first = house.domain("a", 4 * MIB, scrub);
        drop([fill(&first, 300), fill(&first, 40_000), fill(&first, 2 << 20)]);
        house.end(first);
        let left = house.backing.count_in_released(PATTERN);
        let second = house.domain("b", 4 * MIB, Scrub::Lazy);
        (left, pattern_in_all(&second, 40_000))
    };
    assert_eq!((run(Scrub::Lazy), run(Scrub::Now)), ((0, 0), (0, 0)));
    let (left, found) = run(Scrub::Off);
    assert!(
        left >= (2 << 20) + 40_300 && found > 40_000,
        "without scrubbing the pattern must be found: {left}, {found}"
    );
}

#[test]
fn scrubbing_does_about_as_much_as_it_is_asked_to() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 8 * MIB, Scrub::Lazy);
    drop(fill(&domain, 4 << 20));
    assert_eq!((domain.scrub(100 << 10), domain.usage().dirty), (256 << 10, (4 * MIB) - (256 << 10)));
    assert_eq!(domain.scrub(usize::MAX), (4 << 20) - (256 << 10));
    assert_eq!(domain.scrub(usize::MAX), 0);
}

#[test]
fn a_lowered_limit_keeps_what_is_leased_and_gives_back_what_is_free() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 8 * MIB, Scrub::Lazy);
    let mut held = vec![fill(&domain, 2 << 20), fill(&domain, 2 << 20), fill(&domain, 2 << 20)];
    drop(held.pop());
    domain.set_limit(3 * MIB);
    assert_eq!((domain.usage().committed, house.budget.usage().used), (4 * MIB, 4 * MIB));
    assert_eq!(domain.lease(64).unwrap_err().refusal().unwrap().used, 4_194_304.0);
    assert_eq!(count(held[0].as_slice(), PATTERN), 2 << 20);
    held.clear();
    domain.set_limit(MIB);
    assert_eq!(domain.usage().committed, 2 * MIB);
}

#[test]
fn a_raised_limit_finds_addresses_beyond_the_first_window() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 2 * MIB, Scrub::Lazy);
    let first = fill(&domain, 2 << 20);
    domain.set_limit(24 * MIB);
    let more: Vec<_> = (0..2).map(|_| fill(&domain, 8 << 20)).collect();
    assert_eq!(domain.usage().in_use, 18 * MIB);
    assert_eq!(count(first.as_slice(), PATTERN) + count(more[1].as_slice(), PATTERN), 10 << 20);
    drop((first, more));
    while domain.scrub(usize::MAX) != 0 {}
    house.end(domain);
    assert_eq!((house.backing.count_in_released(PATTERN), house.budget.usage().used), (0, 0));
}

#[test]
fn the_figures_follow_the_leases() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 8 * MIB, Scrub::Lazy);
    let (small, large) = (domain.lease(1000).unwrap(), domain.lease(3 << 20).unwrap());
    let usage = domain.usage();
    assert_eq!((usage.in_use, usage.leases, usage.committed, usage.dirty), (1024 + 3 * MIB, 2, 6 * MIB, 0));
    drop((small, large));
    let usage = domain.usage();
    assert_eq!((usage.in_use, usage.leases, usage.high_water), (0, 0, 1024 + 3 * MIB));
    assert_eq!((usage.life, usage.limit, usage.dirty), (Life::Open, 8 * MIB, 1024 + 3 * MIB));
}

#[test]
fn when_the_system_has_no_memory_the_accounts_are_as_before() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 8 * MIB, Scrub::Lazy);
    *house.backing.commits_left.lock() = Some(0);
    let error = domain.lease(3 << 20).unwrap_err();
    assert_eq!((error.code(), error.refusal().unwrap().limit), (Code::Unavailable, "server_memory"));
    assert!(error.detail().unwrap().contains("max_map_count"));
    assert_eq!((domain.usage().committed, domain.usage().in_use, house.budget.usage().used), (0, 0, 0));
    *house.backing.commits_left.lock() = None;
    drop(domain.lease(8 << 20).unwrap());
}

#[test]
fn a_closed_domain_leases_nothing_and_ends_with_its_last_lease() {
    let house = House::new(u64::MAX);
    let domain = house.domain("acme-corp", 8 * MIB, Scrub::Lazy);
    let (first, last) = (fill(&domain, 3000), fill(&domain, 3 << 20));
    domain.close(Nanos(5));
    domain.close(Nanos(6));
    let error = domain.lease(1).unwrap_err();
    assert_eq!((error.code(), error.refusal().unwrap().limit), (Code::Unavailable, "tenant_deleted"));
    assert_eq!(domain.ensure_open().unwrap_err(), error);
    drop(first);
    assert_eq!((domain.usage().life, house.reaper.reap_pending()), (Life::Closed, 0));
    assert_eq!(count(last.as_slice(), PATTERN), 3 << 20, "a lease that is out keeps its memory");
    drop(last);
    assert_eq!((domain.usage().life, domain.usage().committed), (Life::Reaped, 0));
    assert_eq!(house.budget.usage().used, 6 * MIB, "the memory is given back when it is gone, not before");
    assert_eq!(house.reaper.reap_pending(), 1);
    assert_eq!((house.budget.usage().used, house.backing.count_in_released(PATTERN)), (0, 0));
    assert_eq!(domain.lease(1).unwrap_err().refusal().unwrap().limit, "tenant_deleted");
    assert_eq!(domain.scrub(usize::MAX), 0);
    drop(domain);
    assert_eq!(house.reaper.reap_pending(), 0);
}

#[test]
fn a_domain_dropped_without_being_closed_ends_too() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 8 * MIB, Scrub::Lazy);
    let lease = fill(&domain, 3000);
    drop(domain);
    assert_eq!(house.reaper.reap_pending(), 0);
    drop(lease);
    assert_eq!(house.reaper.reap_pending(), 1);
    assert_eq!((house.budget.usage().used, house.backing.count_in_released(PATTERN)), (0, 0));
}

#[test]
fn who_keeps_a_closed_domain_for_thirty_seconds_is_named() {
    let house = House::new(u64::MAX);
    let second = Duration::from_secs(1);
    let held = house.domain("held", 8 * MIB, Scrub::Lazy);
    let free = house.domain("free", 8 * MIB, Scrub::Lazy);
    let (lease, gone) = (held.lease(1000).unwrap(), free.lease(1000).unwrap());
    held.close(Nanos(0) + second);
    free.close(Nanos(0) + second);
    drop(gone);
    assert_eq!(house.reaper.overdue(Nanos(0) + 30 * second), []);
    let report = OverdueDomain { label: "held".into(), leases: 1, bytes: 1024, closed_for: 31 * second };
    assert_eq!(house.reaper.overdue(Nanos(0) + 32 * second), [report]);
    drop(lease);
    assert_eq!(house.reaper.overdue(Nanos(0) + 60 * second), []);
}

#[test]
fn a_domain_that_outlives_the_reaper_ends_with_its_last_lease() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", 8 * MIB, Scrub::Lazy);
    let lease = fill(&domain, 3000);
    domain.close(Nanos(0));
    house.reaper.stop();
    drop(lease);
    assert_eq!((house.budget.usage().used, house.backing.count_in_released(PATTERN)), (0, 0));
}

#[test]
fn a_lease_says_nothing_of_its_contents() {
    let house = House::new(u64::MAX);
    let mut lease = house.domain("acme-corp", MIB, Scrub::Lazy).lease(6).unwrap();
    lease.as_mut_slice().copy_from_slice(b"secret");
    let shown = format!("{lease:?} {:?}", lease.domain());
    assert!(shown.contains("acme-corp") && !shown.contains("secret") && !shown.contains("115"), "{shown}");
}

#[test]
fn a_truncated_lease_shows_less_and_counts_the_same() {
    let house = House::new(u64::MAX);
    let domain = house.domain("a", MIB, Scrub::Lazy);
    let mut lease = domain.lease(1000).unwrap();
    lease.truncate(10);
    lease.truncate(500);
    assert_eq!((lease.len(), lease.as_slice().len(), domain.usage().in_use), (10, 10, 1024));
    lease.truncate(0);
    assert!(lease.is_empty() && domain.lease(0).unwrap().as_slice().is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Lease(usize),
    Drop(usize),
    Truncate(usize, usize),
    Scrub(usize),
    SetLimit(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..9000).prop_map(Step::Lease),
        2 => (9000usize..5 * ARENA_BYTES / 2).prop_map(Step::Lease),
        5 => any::<usize>().prop_map(Step::Drop),
        1 => (any::<usize>(), 0usize..9000).prop_map(|(pick, bytes)| Step::Truncate(pick, bytes)),
        1 => (0usize..1 << 20).prop_map(Step::Scrub),
        1 => (1u64..8 * MIB).prop_map(Step::SetLimit),
    ]
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn leases_keep_what_was_written_whatever_happens_around_them(
        now in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 10 } else { 60 }),
    ) {
        let house = House::new(u64::MAX);
        let domain = house.domain("a", 6 * MIB, if now { Scrub::Now } else { Scrub::Lazy });
        let mut live: Vec<(Lease, u8)> = Vec::new();
        for (index, step) in steps.into_iter().enumerate() {
            let mark = index as u8 | 1;
            match step {
                Step::Lease(bytes) => if let Ok(mut lease) = domain.lease(bytes) {
                    prop_assert!(lease.as_slice().as_ptr().addr().is_multiple_of(64));
                    prop_assert_eq!(lease.len(), bytes);
                    prop_assert!(!now || lease.as_slice().iter().all(|byte| *byte == 0));
                    lease.as_mut_slice().fill(mark);
                    live.push((lease, mark));
                },
                Step::Drop(pick) if !live.is_empty() => {
                    let (lease, mark) = live.swap_remove(pick % live.len());
                    prop_assert_eq!(count(lease.as_slice(), mark), lease.len());
                }
                Step::Truncate(pick, bytes) if !live.is_empty() => {
                    let index = pick % live.len();
                    live[index].0.truncate(bytes);
                }
                Step::Scrub(bytes) => _ = domain.scrub(bytes),
                Step::SetLimit(limit) => domain.set_limit(limit),
                Step::Drop(_) | Step::Truncate(..) => {}
            }
        }
        for (lease, mark) in &live {
            prop_assert_eq!(count(lease.as_slice(), *mark), lease.len());
        }
        prop_assert_eq!(domain.usage().leases, live.len() as u64);
        drop(live);
        prop_assert_eq!((domain.usage().in_use, domain.usage().leases), (0, 0));
        house.end(domain);
        prop_assert_eq!(house.budget.usage().used, 0);
    }
}
