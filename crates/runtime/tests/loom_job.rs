//! The job cell under loom: in every interleaving of its sides exactly one wins, the payload is dropped exactly once, and
//! nobody waits in vain. Run with `RUSTFLAGS="--cfg loom" cargo test -p insula-runtime --test loom_job --release`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use insula_runtime::job::{ClaimedJob, Delivery, Ended, Job, JobReply, new_job};
use loom::future::block_on;
use loom::thread;

/// Counts its drops. The counter is none of loom's: it is looked at only when all threads have ended.
struct Payload(Arc<AtomicUsize>);

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs `model` in every interleaving, with a payload for it, and checks that the payload was dropped exactly once.
fn explore(model: impl Fn(Payload) + Sync + Send + 'static) {
    loom::model(move || {
        let drops = Arc::new(AtomicUsize::new(0));
        model(Payload(drops.clone()));
        assert_eq!(drops.load(Ordering::SeqCst), 1, "drops of the payload");
    });
}

/// The serving side: queues, claims and answers; what became of it.
fn serve(mut job: Job<Payload, u32>) -> Option<Delivery> {
    job.with_payload(|_| ());
    if !job.enqueue() {
        return None;
    }
    job.claim().ok().map(|claimed| claimed.finish(7))
}

#[test]
fn a_reply_reaches_a_caller_that_waits() {
    explore(|payload| {
        let (job, handle) = new_job(payload);
        let server = thread::spawn(move || serve(job));
        assert_eq!(block_on(handle), JobReply::Answered(7));
        assert_eq!(server.join().unwrap(), Some(Delivery::Delivered));
    });
}

#[test]
fn withdrawal_and_service_are_won_by_one_side_each() {
    explore(|payload| {
        let (job, handle) = new_job(payload);
        let server = thread::spawn(move || serve(job));
        let ended = handle.expire();
        let served = server.join().unwrap();
        let expected = match ended {
            Ended::Unclaimed => None,
            Ended::Abandoned => Some(Delivery::Abandoned),
            Ended::TooLate => Some(Delivery::Delivered),
        };
        assert_eq!(served, expected, "after {ended:?}");
    });
}

#[test]
fn a_withdrawn_payload_is_gone_once_both_sides_are_past_it() {
    explore(|payload| {
        let drops = payload.0.clone();
        let (mut job, handle) = new_job::<_, u32>(payload);
        let server = thread::spawn(move || {
            job.with_payload(|_| ());
            job
        });
        drop(handle);
        let job = server.join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1, "the payload waits for the job to be dropped");
        drop(job);
    });
}

#[test]
fn a_deadline_and_a_departure_at_once_end_a_job_once() {
    explore(|payload| {
        let (job, handle) = new_job(payload);
        let claimer = thread::spawn(move || {
            job.enqueue();
            job.claim().ok().map(ClaimedJob::is_abandoned_then_finish)
        });
        let ends = [handle.expire(), handle.cancel()];
        drop(handle);
        let delivery = claimer.join().unwrap();
        assert_eq!(ends[1], Ended::TooLate, "ended twice: {ends:?}");
        assert_eq!(ends[0] == Ended::TooLate, delivery == Some(Delivery::Delivered), "{ends:?}, {delivery:?}");
    });
}

trait FinishAnyway {
    fn is_abandoned_then_finish(self) -> Delivery;
}

impl FinishAnyway for ClaimedJob<Payload, u32> {
    /// Finishes; a worker that saw the job abandoned must not deliver.
    fn is_abandoned_then_finish(self) -> Delivery {
        let abandoned = self.is_abandoned();
        let delivery = self.finish(7);
        assert!(!abandoned || delivery == Delivery::Abandoned);
        delivery
    }
}

#[test]
fn a_caller_learns_that_its_job_was_lost_and_can_send_it_again() {
    explore(|payload| {
        let (job, mut handle) = new_job(payload);
        let dying = thread::spawn(move || drop(job));
        assert_eq!(block_on(&mut handle), JobReply::Lost);
        let job = handle.take_back().expect("a job that was never queued comes back");
        assert!(handle.take_back().is_none(), "it came back twice");
        dying.join().unwrap();
        let server = thread::spawn(move || serve(job));
        assert_eq!(block_on(handle), JobReply::Answered(7));
        server.join().unwrap();
    });
}

#[test]
fn a_worker_that_dies_with_a_job_lets_its_caller_go() {
    explore(|payload| {
        let (job, mut handle) = new_job::<_, u32>(payload);
        let worker = thread::spawn(move || {
            job.enqueue();
            drop(job.claim());
        });
        assert_eq!(block_on(&mut handle), JobReply::Lost);
        assert!(handle.take_back().is_none(), "what a worker had is not sent again");
        worker.join().unwrap();
    });
}
