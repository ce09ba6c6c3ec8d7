//! The shard from outside: entries in, batches out, panics contained, workers woken. That no wake-up is lost in any
//! interleaving is shown by the loom test.
#![cfg(not(loom))]

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::fair_queue::{PlanKey, Rows, TenantSlot, Weight};
use crate::job::{ClaimedJob, Ended, Job, JobHandle, JobReply, new_job};

const SECOND: u64 = 1_000_000_000;

fn settings(max_queue_delay: Duration) -> FairQueueSettings {
    FairQueueSettings { slice: Duration::from_millis(5), max_queue_delay }
}

fn shard<E: ShardEntry>(workers: usize) -> Shard<E> {
    Shard::new(settings(Duration::ZERO), (0..workers).map(|_| ThreadParker::default()).collect()).unwrap()
}

fn entry<E>(tenant: u32, item: E) -> Entry<E> {
    Entry {
        tenant: TenantSlot(tenant),
        weight: Weight::ONE,
        plan: PlanKey(1),
        rows: Rows::new(1, 8).unwrap(),
        priority: 0,
        arrived: Nanos(0),
        unmixed: false,
        item,
    }
}

/// An entry that can be withdrawn, or panic, when it is claimed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Probe {
    Good,
    Late,
    Bomb,
}

thread_local! {
    static FAILED: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

impl ShardEntry for Probe {
    type Claimed = Probe;

    fn claim(self, now: Nanos) -> std::result::Result<Probe, Probe> {
        match self {
            Probe::Good => Ok(self),
            Probe::Late if now > Nanos(SECOND) => Err(self),
            Probe::Late => Ok(self),
            Probe::Bomb => panic!("the entry strikes"),
        }
    }

    fn fail(self, fault: SchedulerFault) {
        let mut failed = FAILED.get();
        failed[usize::from(fault == SchedulerFault::StartedOver)] += 1;
        FAILED.set(failed);
    }
}

fn probes(shard: &Shard<Probe>, tenant: u32, probes: &[Probe]) {
    probes.iter().for_each(|probe| shard.push(entry(tenant, *probe)));
}

/// Takes and settles a batch; its items.
fn run(shard: &Shard<Probe>, now: u64) -> Vec<Probe> {
    let Taken::Batch(batch) = shard.take(Nanos(now)) else { return Vec::new() };
    shard.complete(batch.ticket, Settlement::Measured(Duration::from_millis(2)), Nanos(now));
    batch.entries.into_iter().map(|entry| entry.item).collect()
}

#[test]
fn what_is_pushed_is_seen_in_the_backlog_and_the_counts() {
    let shard = shard(1);
    shard.learn(PlanKey(1), 1, Duration::from_millis(2), Nanos(0));
    probes(&shard, 0, &[Probe::Good; 2]);
    assert_eq!((shard.observe().queued, shard.backlog()), (2, 0), "nothing was measured yet");
    assert_eq!(run(&shard, 0), [Probe::Good; 2]);
    let seen = shard.observe();
    assert_eq!((seen.queued, seen.running, seen.batches, seen.dispatched, seen.rows), (0, 0, 1, 2, 2));
    assert_eq!(seen.device, Duration::from_millis(2));
    probes(&shard, 0, &[Probe::Good; 3]);
    assert_eq!(shard.backlog(), 3_000_000, "1 ms an entry was measured");
    assert!(matches!(shard.take(Nanos(0)), Taken::Batch(_)));
    assert_eq!(shard.observe().running, 1);
    assert!(matches!(shard.take(Nanos(0)), Taken::Nothing));
}

#[test]
fn late_entries_leave_without_running() {
    let shard = shard(1);
    probes(&shard, 0, &[Probe::Late, Probe::Good, Probe::Late]);
    assert_eq!(run(&shard, 2 * SECOND), [Probe::Good]);
    assert_eq!((shard.observe().dead, shard.observe().queued), (2, 0));
}

#[test]
fn a_held_back_batch_tells_until_when() {
    let delay = Duration::from_millis(1);
    let shard: Shard<Probe> = Shard::new(settings(delay), vec![ThreadParker::default()]).unwrap();
    probes(&shard, 0, &[Probe::Good]);
    let Taken::HeldUntil(until) = shard.take(Nanos(5)) else { panic!("it was not held back") };
    assert_eq!(until, Nanos(0) + delay);
    assert!(!shard.published.is_ready(), "a worker would not rest");
    assert_eq!(run(&shard, until.0), [Probe::Good]);
}

#[test]
fn a_panic_under_the_lock_fails_only_the_entry_in_hand() {
    FAILED.set([0; 2]);
    let shard = shard(1);
    probes(&shard, 0, &[Probe::Good, Probe::Bomb, Probe::Good]);
    probes(&shard, 1, &[Probe::Good]);
    let mut ran: Vec<_> = (0..3).flat_map(|_| run(&shard, 0)).collect();
    ran.extend(run(&shard, 0));
    assert_eq!(ran, [Probe::Good; 3]);
    assert_eq!(FAILED.get(), [0, 0], "the panic consumed its entry, which answers by being dropped");
    probes(&shard, 0, &[Probe::Bomb, Probe::Good]);
    assert_eq!(run(&shard, 2 * SECOND), [Probe::Good], "a panic long after the first is a first one again");
}

#[test]
fn a_second_panic_within_a_second_fails_everything_queued_and_the_shard_goes_on() {
    FAILED.set([0; 2]);
    let shard = shard(1);
    let plans = |plan, probe| Entry { plan: PlanKey(plan), ..entry(plan as u32, probe) };
    shard.push(plans(1, Probe::Bomb));
    assert_eq!(run(&shard, SECOND), []);
    shard.push(plans(1, Probe::Bomb));
    (2..7).for_each(|plan| shard.push(plans(plan, Probe::Good)));
    while !run(&shard, SECOND + SECOND / 2).is_empty() {}
    let ran = shard.observe().dispatched as usize;
    assert_eq!(FAILED.get(), [0, 5 - ran]);
    assert_eq!(shard.observe().failed as usize, 5 - ran);
    assert_eq!(shard.observe().queued, 0);
    probes(&shard, 9, &[Probe::Good]);
    assert_eq!(run(&shard, SECOND + SECOND / 2), [Probe::Good]);
}

#[test]
fn a_tenant_that_leaves_gets_back_also_what_was_not_drained() {
    let shard = shard(1);
    probes(&shard, 0, &[Probe::Good; 9]);
    assert!(!run(&shard, 0).is_empty());
    probes(&shard, 0, &[Probe::Late]);
    probes(&shard, 1, &[Probe::Good]);
    let returned = shard.remove_tenant(TenantSlot(0), Nanos(0));
    assert_eq!(returned.iter().filter(|probe| **probe == Probe::Late).count(), 1);
    assert_eq!(returned.len() as u64 + shard.observe().dispatched, 10);
    assert_eq!(run(&shard, 0), [Probe::Good]);
    assert_eq!(run(&shard, 0), []);
}

#[test]
fn a_shard_has_at_least_one_worker_and_at_most_as_many_as_a_word_has_bits() {
    for (workers, fits) in [(0, false), (1, true), (MAX_WORKERS, true), (MAX_WORKERS + 1, false)] {
        let parkers = (0..workers).map(|_| ThreadParker::default()).collect();
        assert_eq!(Shard::<Probe>::new(settings(Duration::ZERO), parkers).is_ok(), fits, "{workers} workers");
    }
}

#[test]
fn a_wake_up_before_the_rest_is_kept_and_time_ends_a_rest() {
    let shard: Shard<Probe> = shard(2);
    shard.wake(WorkerIndex(1));
    shard.park(WorkerIndex(1), None);
    shard.park(WorkerIndex(1), Some(Duration::from_millis(1)));
    shard.park(WorkerIndex(7), None);
    assert_eq!(shard.idle.claim_one(), None, "nobody rests any more");
}

#[test]
fn a_worker_that_leaves_passes_its_wake_up_on() {
    let shard = shard(2);
    shard.idle.announce(WorkerIndex(0));
    shard.idle.announce(WorkerIndex(1));
    probes(&shard, 0, &[Probe::Good]);
    shard.retire(WorkerIndex(0));
    shard.parkers[1].park(None);
    assert_eq!(run(&shard, 0), [Probe::Good]);
}

struct Errand(Job<Arc<AtomicUsize>, usize>);

impl ShardEntry for Errand {
    type Claimed = ClaimedJob<Arc<AtomicUsize>, usize>;

    fn claim(self, _now: Nanos) -> std::result::Result<Self::Claimed, Self> {
        self.0.claim().map_err(Errand)
    }

    fn fail(self, fault: SchedulerFault) {
        panic!("nothing panics here, yet {fault:?}");
    }
}

type ErrandHandle = JobHandle<Arc<AtomicUsize>, usize>;

fn work(shard: &Shard<Errand>, worker: WorkerIndex, unsettled: &AtomicUsize) {
    while unsettled.load(Ordering::SeqCst) > 0 {
        let Taken::Batch(batch) = shard.take(Nanos(0)) else {
            shard.park(worker, None);
            continue;
        };
        for mut entry in batch.entries {
            let runs = entry.item.payload().fetch_add(1, Ordering::SeqCst);
            entry.item.finish(runs + 1);
            unsettled.fetch_sub(1, Ordering::SeqCst);
        }
        shard.complete(batch.ticket, Settlement::Measured(Duration::from_micros(10)), Nanos(0));
    }
    (0..3).for_each(|other| shard.wake(WorkerIndex(other)));
}

/// Pushes `count` jobs and withdraws every third of them; returns the handles of those that must be answered.
fn submit(shard: &Shard<Errand>, tenant: u32, count: usize, unsettled: &AtomicUsize) -> Vec<ErrandHandle> {
    let mut waiting = Vec::new();
    for number in 0..count {
        let (job, handle) = new_job(Arc::new(AtomicUsize::new(0)));
        assert!(job.enqueue());
        shard.push(entry(tenant, Errand(job)));
        if number % 3 != 0 {
            waiting.push(handle);
        } else if handle.cancel() == Ended::Unclaimed {
            unsettled.fetch_sub(1, Ordering::SeqCst);
            (0..3).for_each(|worker| shard.wake(WorkerIndex(worker)));
        }
    }
    waiting
}

#[test]
fn under_load_every_job_is_run_at_most_once_and_answered_or_withdrawn() {
    let count = 3_000;
    let (shard, unsettled) = (shard(3), AtomicUsize::new(3 * count));
    let handles: Vec<ErrandHandle> = std::thread::scope(|scope| {
        for worker in 0..3 {
            let (shard, unsettled) = (&shard, &unsettled);
            scope.spawn(move || work(shard, WorkerIndex(worker), unsettled));
        }
        let pushers: Vec<_> = (0..3)
            .map(|tenant| {
                scope.spawn({
                    let (shard, unsettled) = (&shard, &unsettled);
                    move || submit(shard, tenant, count, unsettled)
                })
            })
            .collect();
        pushers.into_iter().flat_map(|pusher| pusher.join().unwrap()).collect()
    });
    assert_eq!(handles.len(), 3 * (count - count / 3));
    for mut handle in handles {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let reply = std::pin::pin!(&mut handle).poll(&mut context);
        assert_eq!(reply, std::task::Poll::Ready(JobReply::Answered(1)));
    }
    while matches!(shard.take(Nanos(0)), Taken::Batch(_)) {}
    let seen = shard.observe();
    assert_eq!((seen.queued, seen.running), (0, 0));
    assert_eq!(seen.dispatched + seen.dead, 3 * count as u64);
}
