//! The job cell's rules, one by one; that they hold in every interleaving is shown by the loom test.
#![cfg(not(loom))]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use parking_lot::Mutex;

use super::*;

/// Notes the threads that drop it.
struct Payload(Arc<Mutex<Vec<ThreadId>>>);

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.lock().push(thread::current().id());
    }
}

type Drops = Arc<Mutex<Vec<ThreadId>>>;

fn job() -> (Job<Payload, u32>, JobHandle<Payload, u32>, Drops) {
    let drops = Drops::default();
    let (job, handle) = new_job(Payload(drops.clone()));
    (job, handle, drops)
}

fn poll<P, R>(handle: &mut JobHandle<P, R>) -> Poll<JobReply<R>> {
    pin!(handle).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_reply_reaches_the_waiting_task() {
    struct Unpark(thread::Thread, AtomicUsize);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.unpark();
        }
    }
    let (job, mut handle, drops) = job();
    assert!(job.enqueue());
    let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(unpark.clone());
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    let worker = thread::spawn(move || job.claim().ok().map(|job| job.finish(7)));
    let reply = loop {
        match pin!(&mut handle).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(reply) => break reply,
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(reply, JobReply::Answered(7));
    assert_eq!(worker.join().unwrap(), Some(Delivery::Delivered));
    assert!(unpark.1.load(Ordering::SeqCst) <= 1);
    assert_eq!(drops.lock().len(), 1);
}

#[test]
fn a_caller_that_leaves_early_frees_the_payload_at_once_on_its_own_thread() {
    for queued in [false, true] {
        let (job, handle, drops) = job();
        assert!(!queued || job.enqueue());
        let leaver = thread::spawn(move || {
            drop(handle);
            thread::current().id()
        });
        let leaver = leaver.join().unwrap();
        assert_eq!(*drops.lock(), [leaver]);
        assert!(job.is_withdrawn());
        assert!(job.claim().is_err());
    }
}

#[test]
fn a_caller_that_leaves_late_leaves_the_payload_to_the_worker() {
    let (job, handle, drops) = job();
    assert!(job.enqueue());
    let claimed = job.claim().unwrap();
    assert!(!claimed.is_abandoned());
    assert_eq!(handle.cancel(), Ended::Abandoned);
    assert_eq!(handle.cancel(), Ended::TooLate);
    drop(handle);
    assert!(claimed.is_abandoned());
    assert!(drops.lock().is_empty(), "the worker still runs on it");
    assert_eq!(claimed.finish(7), Delivery::Abandoned);
    assert_eq!(drops.lock().len(), 1);
}

#[test]
fn a_deadline_ends_a_job_once_and_its_handle_does_not_wait_on() {
    let (first, mut handle, drops) = job();
    assert_eq!((handle.expire(), handle.expire(), handle.cancel()), (Ended::Unclaimed, Ended::TooLate, Ended::TooLate));
    assert_eq!(drops.lock().len(), 1);
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Lost));
    assert!(!first.enqueue());

    let (second, mut handle, _drops) = job();
    let claimed = second.claim().unwrap();
    assert_eq!(handle.expire(), Ended::Abandoned);
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Lost));
    assert_eq!(claimed.finish(7), Delivery::Abandoned);
}

#[test]
fn a_withdrawal_in_the_middle_of_a_step_waits_for_nobody() {
    for panics in [false, true] {
        let (mut job, handle, drops) = job();
        let step = catch_unwind(AssertUnwindSafe(|| {
            job.with_payload(|_| {
                assert_eq!(handle.expire(), Ended::Unclaimed);
                assert!(drops.lock().is_empty(), "the payload was dropped under the step");
                assert!(!panics, "the step fails");
            })
        }));
        assert_eq!(step.is_err(), panics);
        assert_eq!(drops.lock().len(), 1, "the step that was interrupted dropped it");
        assert!(job.with_payload(|_| ()).is_none());
    }
}

#[test]
fn what_a_job_held_is_free_when_its_caller_hears_of_the_reply() {
    let (job, mut handle, drops) = job();
    let mut claimed = job.claim().unwrap();
    let kept = Payload(std::mem::take(&mut claimed.payload().0));
    drop(drops);
    assert_eq!(claimed.finish(7), Delivery::Delivered);
    assert_eq!(kept.0.lock().len(), 0, "what was moved out is the reply's");
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Answered(7)));
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Lost), "a reply is given once");
    assert_eq!(handle.cancel(), Ended::TooLate);
}

#[test]
fn a_request_that_fails_before_it_is_queued_is_answered_by_who_claims_it() {
    let (job, mut handle, _drops) = job();
    assert_eq!(job.claim().unwrap().finish(400), Delivery::Delivered);
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Answered(400)));
}

#[test]
fn only_a_job_that_was_never_queued_can_be_taken_back() {
    let (first, mut handle, drops) = job();
    assert!(handle.take_back().is_none(), "it is still under way");
    drop(first);
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Lost));
    let again = handle.take_back().unwrap();
    assert!(drops.lock().is_empty());
    assert!(poll(&mut handle).is_pending());
    assert!(again.enqueue());
    drop(again);
    assert_eq!(drops.lock().len(), 1, "a queued job that is let go of is over");
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Lost));
    assert!(handle.take_back().is_none());
    assert_eq!(handle.cancel(), Ended::TooLate);
}

#[test]
fn a_worker_that_dies_lets_its_callers_go() {
    let (job, mut handle, drops) = job();
    let claimed = job.claim().unwrap();
    let died = catch_unwind(AssertUnwindSafe(move || {
        let _claimed = claimed;
        panic!("the worker dies");
    }));
    assert!(died.is_err());
    assert_eq!(drops.lock().len(), 1);
    assert_eq!(poll(&mut handle), Poll::Ready(JobReply::Lost));
    assert!(handle.take_back().is_none());
}
