//! The caller's side of a job: a future of its reply. Dropping it withdraws the job, at any time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::cell::{JobCell, Stage};
use super::serving::Job;
use crate::shard::sync::Arc;

/// Waits for a job's reply. Dropping it before the job is claimed frees the payload at once, on the dropping thread.
pub struct JobHandle<P, R> {
    cell: Arc<JobCell<P, R>>,
}

/// How a job ended for its caller.
#[derive(Debug, PartialEq, Eq)]
pub enum JobReply<R> {
    /// It was answered.
    Answered(R),
    /// The serving side let go of it without an answer: its actor or worker died, or it was withdrawn. If it had not been
    /// queued, [`JobHandle::take_back`] returns it.
    Lost,
}

/// What a withdrawal did. Except for [`Ended::TooLate`] the caller's side has ended the job, and counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No worker had claimed it, and none will: the payload has been freed.
    Unclaimed,
    /// A worker has it and keeps the payload until it is done; its reply will be thrown away.
    Abandoned,
    /// It had ended before.
    TooLate,
}

impl<P, R> JobHandle<P, R> {
    pub(super) fn new(cell: Arc<JobCell<P, R>>) -> Self {
        JobHandle { cell }
    }

    /// Withdraws the job because its caller no longer wants it. Dropping the handle does the same.
    pub fn cancel(&self) -> Ended {
        self.withdraw(Stage::Cancelled)
    }

    /// Withdraws the job because its time is over.
    pub fn expire(&self) -> Ended {
        self.withdraw(Stage::Expired)
    }

    fn withdraw(&self, to: Stage) -> Ended {
        loop {
            let from = self.cell.stage();
            let (to, ended) = match from {
                Stage::New | Stage::Queued => (to, Ended::Unclaimed),
                Stage::Claimed => (Stage::Abandoned, Ended::Abandoned),
                Stage::Done | Stage::Cancelled | Stage::Expired | Stage::Abandoned => return Ended::TooLate,
            };
            if self.cell.step(from, to) {
                if ended == Ended::Unclaimed {
                    self.cell.release_withdrawn();
                }
                return ended;
            }
        }
    }

    /// Takes back a job that was lost before it was queued, to send it elsewhere. `None` if it is not lost or was queued.
    pub fn take_back(&mut self) -> Option<Job<P, R>> {
        let mut place = self.cell.reply.lock();
        if !place.lost || self.cell.stage() != Stage::New {
            return None;
        }
        place.lost = false;
        Some(Job::new(self.cell.clone()))
    }
}

impl<P, R> Future for JobHandle<P, R> {
    type Output = JobReply<R>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<JobReply<R>> {
        let mut place = self.cell.reply.lock();
        if let Some(reply) = place.reply.take() {
            place.lost = true;
            return Poll::Ready(JobReply::Answered(reply));
        }
        if place.lost || self.cell.is_withdrawn() || self.cell.stage() == Stage::Abandoned {
            return Poll::Ready(JobReply::Lost);
        }
        match &mut place.waiting {
            Some(waker) => waker.clone_from(context.waker()),
            vacant => *vacant = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl<P, R> Drop for JobHandle<P, R> {
    fn drop(&mut self) {
        self.withdraw(Stage::Cancelled);
    }
}

impl<P, R> fmt::Debug for JobHandle<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle").field("stage", &self.cell.stage()).finish()
    }
}
