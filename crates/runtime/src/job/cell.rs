//! The shared state of a job: its stage, its payload, and the place for its reply. Holds what is true for both sides; what each
//! may do is in their own files.

use std::task::Waker;

use crate::shard::sync::{AtomicU8, Mutex, Ordering, fence};

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// With its tenant: being decoded, or about to be queued.
    New = 0,
    /// In a shard.
    Queued = 1,
    /// With a worker.
    Claimed = 2,
    /// Answered, or let go of unanswered by the worker.
    Done = 3,
    /// Withdrawn by its caller before it was claimed.
    Cancelled = 4,
    /// Its time was over before it was claimed.
    Expired = 5,
    /// Its caller has gone, or its time was over, while a worker had it.
    Abandoned = 6,
}

const STAGES: [Stage; 7] =
    [Stage::New, Stage::Queued, Stage::Claimed, Stage::Done, Stage::Cancelled, Stage::Expired, Stage::Abandoned];

pub(super) struct JobCell<P, R> {
    stage: AtomicU8,
    payload: Mutex<Option<P>>,
    pub(super) reply: Mutex<ReplyPlace<R>>,
}

/// Where the reply is left and who waits for it.
pub(super) struct ReplyPlace<R> {
    pub(super) reply: Option<R>,
    /// The serving side has let go of the job without a reply.
    pub(super) lost: bool,
    pub(super) waiting: Option<Waker>,
}

impl<P, R> JobCell<P, R> {
    pub(super) fn new(payload: P) -> Self {
        JobCell {
            stage: AtomicU8::new(Stage::New as u8),
            payload: Mutex::new(Some(payload)),
            reply: Mutex::new(ReplyPlace { reply: None, lost: false, waiting: None }),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        // Only stages are ever stored.
        STAGES[usize::from(self.stage.load(Ordering::Acquire))]
    }

    /// Goes from `from` to `to`; says whether this side won the step.
    pub(super) fn step(&self, from: Stage, to: Stage) -> bool {
        self.stage.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether the caller ended the job before it was claimed.
    pub(super) fn is_withdrawn(&self) -> bool {
        matches!(self.stage(), Stage::Cancelled | Stage::Expired)
    }

    /// The caller's side, after it withdrew the job: drops the payload here and now. If the serving side is working on it at
    /// this moment, that side drops it when it is done with its step, so nobody waits.
    pub(super) fn release_withdrawn(&self) {
        // Pairs with the fence after a step: either the lock is seen free here, or the withdrawal is seen there.
        fence(Ordering::SeqCst);
        let payload = self.payload.try_lock().and_then(|mut payload| payload.take());
        drop(payload);
    }

    /// The serving side: works on the payload unless the job was withdrawn.
    pub(super) fn with_payload<T>(&self, work: impl FnOnce(&mut P) -> T) -> Option<T> {
        let _after = AfterStep(self);
        let mut payload = self.payload.lock();
        if self.is_withdrawn() { None } else { payload.as_mut().map(work) }
    }

    pub(super) fn take_payload(&self) -> Option<P> {
        self.payload.lock().take()
    }

    /// Notes that the serving side let go of the job, and tells the caller.
    pub(super) fn lose(&self) {
        let waiting = {
            let mut place = self.reply.lock();
            place.lost = true;
            place.waiting.take()
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// Drops the payload of a job that was withdrawn while the serving side worked on it, also when that work panicked.
struct AfterStep<'a, P, R>(&'a JobCell<P, R>);

impl<P, R> Drop for AfterStep<'_, P, R> {
    fn drop(&mut self) {
        // Pairs with the fence in `release_withdrawn`. The lock was given back before.
        fence(Ordering::SeqCst);
        if self.0.is_withdrawn() {
            drop(self.0.take_payload());
        }
    }
}
