//! The shard's wake-up protocol under loom: two pushers, two workers and a caller that withdraws. No wake-up is lost, nothing
//! is dispatched twice, every payload is dropped once and every job answered once. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p insula-runtime --test loom_wake --release`.
#![cfg(loom)]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use insula_core::Nanos;
use insula_runtime::fair_queue::{Entry, FairQueueSettings, PlanKey, Rows, TenantSlot, Weight};
use insula_runtime::job::{ClaimedJob, Delivery, Ended, Job, JobHandle, JobReply, new_job};
use insula_runtime::shard::{SchedulerFault, Shard, ShardEntry, Taken, ThreadParker, WorkerIndex};
use loom::thread;

/// What happened to one job. Not loom's: a view from above that adds no interleavings.
#[derive(Default)]
struct Story {
    dispatched: AtomicUsize,
    delivered: AtomicUsize,
    dropped: AtomicUsize,
}

struct Payload(Arc<Story>);

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

struct Item {
    job: Job<Payload, u32>,
    house: Arc<House>,
}

impl ShardEntry for Item {
    type Claimed = ClaimedJob<Payload, u32>;

    fn claim(self, _now: Nanos) -> Result<Self::Claimed, Self> {
        let Item { job, house } = self;
        job.claim().map_err(|job| {
            house.settle();
            Item { job, house }
        })
    }

    fn fail(self, fault: SchedulerFault) {
        unreachable!("nothing panics here, yet {fault:?}");
    }
}

/// A shard whose workers go home when every job has been dispatched or found withdrawn.
struct House {
    shard: Shard<Item>,
    workers: usize,
    unsettled: AtomicUsize,
}

impl House {
    fn new(workers: usize, jobs: usize) -> Arc<House> {
        let settings = FairQueueSettings { slice: Duration::from_millis(5), max_queue_delay: Duration::ZERO };
        let parkers = (0..workers).map(|_| ThreadParker::default()).collect();
        Arc::new(House {
            shard: Shard::new(settings, parkers).expect("a shard has room for these workers"),
            workers,
            unsettled: AtomicUsize::new(jobs),
        })
    }

    fn push(self: &Arc<Self>, tenant: u32, job: Job<Payload, u32>) {
        self.shard.push(Entry {
            tenant: TenantSlot(tenant),
            weight: Weight::ONE,
            plan: PlanKey(u64::from(tenant)),
            rows: Rows::new(1, 1).expect("one row fits"),
            priority: 0,
            arrived: Nanos(0),
            unmixed: false,
            item: Item { job, house: self.clone() },
        });
    }

    /// One job less to wait for; after the last one everybody may go.
    fn settle(&self) {
        if self.unsettled.fetch_sub(1, Ordering::SeqCst) == 1 {
            (0..self.workers).for_each(|worker| self.shard.wake(WorkerIndex(worker)));
        }
    }

    fn work(&self, worker: WorkerIndex) {
        loop {
            match self.shard.take(Nanos(0)) {
                Taken::Batch(batch) => batch.entries.into_iter().for_each(|entry| self.run(entry.item)),
                _ if self.unsettled.load(Ordering::SeqCst) == 0 => break,
                _ => self.shard.park(worker, None),
            }
        }
    }

    fn run(&self, mut job: ClaimedJob<Payload, u32>) {
        let story = job.payload().0.clone();
        story.dispatched.fetch_add(1, Ordering::SeqCst);
        let delivered = job.finish(7) == Delivery::Delivered;
        story.delivered.fetch_add(usize::from(delivered), Ordering::SeqCst);
        self.settle();
    }
}

/// Explores with at most `preemptions` involuntary switches, unless the environment says otherwise.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}

fn job() -> (Job<Payload, u32>, JobHandle<Payload, u32>, Arc<Story>) {
    let story = Arc::new(Story::default());
    let (job, handle) = new_job(Payload(story.clone()));
    assert!(job.enqueue());
    (job, handle, story)
}

fn counts(story: &Story) -> [usize; 3] {
    [&story.dispatched, &story.delivered, &story.dropped].map(|count| count.load(Ordering::SeqCst))
}

fn spawn(house: &Arc<House>, work: impl FnOnce(&Arc<House>) + Send + 'static) -> thread::JoinHandle<()> {
    let house = house.clone();
    thread::spawn(move || work(&house))
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
}

fn has_reply(handle: JobHandle<Payload, u32>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    std::pin::pin!(handle).poll(&mut context) == Poll::Ready(JobReply::Answered(7))
}

#[test]
fn two_pushers_two_workers_and_a_departing_caller() {
    explore(2, || {
        let house = House::new(2, 2);
        let ((first, leaving, left), (second, staying, stayed)) = (job(), job());
        // The main thread is a worker too, and the caller departs on a pusher's thread: each thread less saves most of the time.
        let resting = spawn(&house, |house| house.work(WorkerIndex(1)));
        let pushing = spawn(&house, |house| house.push(0, first));
        let leaving = thread::spawn({
            let house = house.clone();
            move || {
                house.push(1, second);
                leaving.cancel()
            }
        });
        house.work(WorkerIndex(0));
        join([resting, pushing]);
        let ended = leaving.join().unwrap();
        assert_eq!(counts(&stayed), [1, 1, 1], "the job that was waited for");
        assert!(has_reply(staying));
        let expected = match ended {
            Ended::Unclaimed => [0, 0, 1],
            Ended::Abandoned => [1, 0, 1],
            Ended::TooLate => [1, 1, 1],
        };
        assert_eq!(counts(&left), expected, "the job that was withdrawn: {ended:?}");
    });
}

#[test]
fn a_worker_misses_no_push_while_it_goes_to_rest() {
    explore(3, || {
        let house = House::new(1, 2);
        let ((first, one, _), (second, two, _)) = (job(), job());
        let threads = [spawn(&house, |house| house.work(WorkerIndex(0))), spawn(&house, |house| house.push(0, first))];
        house.push(1, second);
        join(threads);
        assert!(has_reply(one) && has_reply(two));
    });
}

#[test]
fn what_one_worker_leaves_queued_wakes_the_other() {
    explore(4, || {
        let house = House::new(2, 2);
        let ((first, one, _), (second, two, _)) = (job(), job());
        let resting = spawn(&house, |house| house.work(WorkerIndex(1)));
        // A worker that takes one batch, leaves the rest in the fair queue and does not come back for it.
        house.push(0, first);
        house.push(1, second);
        if let Taken::Batch(batch) = house.shard.take(Nanos(0)) {
            batch.entries.into_iter().for_each(|entry| house.run(entry.item));
        }
        join([resting]);
        assert!(has_reply(one) && has_reply(two));
    });
}
