//! Many threads in one domain: leases never overlap, nothing is lost, nothing is refused that fits, and a domain that is closed
//! meanwhile ends when the last of them has let go.
#![cfg(not(miri))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use insula_core::{Code, Nanos};
use insula_memory::{Domain, HostBudget, Lease, Life, Reaper};

#[path = "support/real_domain.rs"]
mod real_domain;

const THREADS: u64 = 4;

/// A small generator of numbers: the tests must not depend on which, only that they vary.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn size(&mut self) -> usize {
        match self.below(20) {
            0 => self.below(5 << 20),
            1..=3 => self.below(300_000),
            _ => self.below(10_000),
        }
    }
}

/// A lease stamped over its whole length with a number of its own.
struct Stamped(Lease, u8);

impl Stamped {
    fn new(mut lease: Lease, stamp: u8) -> Stamped {
        lease.as_mut_slice().fill(stamp);
        Stamped(lease, stamp)
    }

    fn check(&self) {
        assert!(self.0.as_slice().iter().all(|byte| *byte == self.1), "somebody else wrote into a lease");
    }
}

fn work(domain: &Arc<Domain>, thread: u64, rounds: usize, others: &mpsc::Sender<Stamped>) {
    let mut numbers = Numbers(thread);
    let mut held = Vec::new();
    for round in 0..rounds {
        match domain.lease(numbers.size()) {
            Ok(lease) => held.push(Stamped::new(lease, (round as u8).wrapping_mul(7).wrapping_add(thread as u8))),
            Err(error) => assert_eq!(error.code(), Code::QuotaExceeded),
        }
        if numbers.below(3) == 0 && !held.is_empty() {
            let passed = held.swap_remove(numbers.below(held.len()));
            others.send(passed).expect("the receiver lives");
        }
        while held.len() > 12 {
            let gone = held.swap_remove(numbers.below(held.len()));
            gone.check();
        }
    }
    held.iter().for_each(Stamped::check);
}

#[test]
fn leases_of_many_threads_never_overlap_while_the_domain_is_scrubbed_and_its_limit_moves() {
    let reaper = Reaper::start().unwrap();
    let budget = HostBudget::new(u64::MAX);
    let domain = real_domain::domain("busy", 32 << 20, &budget, &reaper);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel::<Stamped>();
        for thread in 0..THREADS {
            let (domain, sender) = (&domain, sender.clone());
            scope.spawn(move || work(domain, thread, 400, &sender));
        }
        drop(sender);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                domain.scrub(1 << 20);
                domain.set_limit(24 << 20);
                domain.set_limit(32 << 20);
                thread::yield_now();
            }
        });
        receiver.iter().for_each(|passed| passed.check());
        done.store(true, Ordering::Relaxed);
    });
    let usage = domain.usage();
    assert_eq!((usage.in_use, usage.leases), (0, 0));
    assert!(usage.high_water <= 32 << 20);
    domain.close(Nanos(0));
    reaper.stop();
    assert_eq!(budget.usage().used, 0);
}

#[test]
fn threads_that_race_for_the_first_arena_of_a_small_domain_all_get_their_lease() {
    for _ in 0..50 {
        let reaper = Reaper::inline();
        let domain = real_domain::domain("small", 1 << 20, &HostBudget::new(u64::MAX), &reaper);
        let start = Barrier::new(THREADS as usize);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    drop(domain.lease(4000).unwrap());
                });
            }
        });
    }
}

#[test]
fn a_lease_is_not_refused_because_the_free_memory_it_needs_is_just_being_scrubbed() {
    let reaper = Reaper::inline();
    let domain = real_domain::domain("whole", 8 << 20, &HostBudget::new(u64::MAX), &reaper);
    let done = AtomicBool::new(false);
    let scrubbed = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                scrubbed.fetch_add(domain.scrub(usize::MAX) as u64, Ordering::Relaxed);
            }
        });
        let all_fit = (0..300).all(|_| domain.lease(8 << 20).is_ok());
        while scrubbed.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        assert!(all_fit);
    });
}

#[test]
fn a_domain_closed_under_leases_on_other_threads_ends_with_the_last_of_them() {
    let reaper = Reaper::start().unwrap();
    let budget = HostBudget::new(u64::MAX);
    for round in 0..30 {
        let domain = real_domain::domain("leaving", 32 << 20, &budget, &reaper);
        let both = Barrier::new(THREADS as usize + 1);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (domain, both) = (Arc::clone(&domain), &both);
                scope.spawn(move || hold_across_the_end(domain, both, thread));
            }
            both.wait();
            domain.close(Nanos(round));
            assert_eq!(domain.usage().leases > 0, domain.usage().life == Life::Closed);
            assert_eq!(domain.scrub(0), 0);
        });
        assert_eq!(domain.usage().life, Life::Reaped);
    }
    reaper.stop();
    assert_eq!(budget.usage().used, 0);
}

fn hold_across_the_end(domain: Arc<Domain>, both: &Barrier, thread: u64) {
    let mut numbers = Numbers(thread);
    let mut held: Vec<_> =
        (0..8).map(|stamp| Stamped::new(domain.lease(numbers.below(600_000)).expect("a lease"), stamp)).collect();
    both.wait();
    let refused = loop {
        match domain.lease(1000) {
            Ok(lease) => Stamped::new(lease, 9).check(),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.refusal().map(|refusal| refusal.limit), Some("tenant_deleted"));
    while let Some(stamped) = held.pop() {
        stamped.check();
    }
}
