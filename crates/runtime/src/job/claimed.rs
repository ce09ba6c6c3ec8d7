//! The worker's side of a job: the payload, and the duty to answer. Whatever happens to the caller, the payload stays until
//! the worker is done with it.

use std::fmt;

use super::cell::{JobCell, Stage};
use crate::shard::sync::Arc;

/// A job that a worker has claimed. Dropping it unanswered tells the caller that it is lost.
pub struct ClaimedJob<P, R> {
    cell: Option<Arc<JobCell<P, R>>>,
    /// Dropped before the caller is told, see [`ClaimedJob::finish`].
    payload: Option<P>,
}

/// What became of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The caller has it.
    Delivered,
    /// The caller had gone, or its time was over; that side counted it.
    Abandoned,
}

impl<P, R> ClaimedJob<P, R> {
    /// For the side that won the step to Claimed: from then on nobody else takes the payload.
    pub(super) fn new(cell: Arc<JobCell<P, R>>) -> Self {
        let payload = cell.take_payload();
        ClaimedJob { cell: Some(cell), payload }
    }

    /// The payload.
    pub fn payload(&mut self) -> &mut P {
        self.payload.as_mut().expect("who claims a job finds its payload, and only calls that consume the job take it")
    }

    /// Whether the caller has gone or its time is over: nobody waits for the reply.
    pub fn is_abandoned(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.stage() == Stage::Abandoned)
    }

    /// Answers. The payload is dropped before the caller is told, so that what it held is free again by then; what shall
    /// outlive it is to be moved into the reply first.
    pub fn finish(self, reply: R) -> Delivery {
        self.finish_with(|payload| {
            drop(payload);
            reply
        })
    }

    /// Answers with what `answer` makes of the payload.
    pub fn finish_with(mut self, answer: impl FnOnce(P) -> R) -> Delivery {
        let reply = self.payload.take().map(answer);
        match self.cell.take() {
            Some(cell) => deliver(&cell, reply),
            None => Delivery::Abandoned,
        }
    }
}

/// Ends the job with `reply`, or as lost without one.
fn deliver<P, R>(cell: &JobCell<P, R>, reply: Option<R>) -> Delivery {
    let waiting = {
        let mut place = cell.reply.lock();
        if !cell.step(Stage::Claimed, Stage::Done) {
            return Delivery::Abandoned;
        }
        place.lost = reply.is_none();
        place.reply = reply;
        place.waiting.take()
    };
    if let Some(waker) = waiting {
        waker.wake();
    }
    Delivery::Delivered
}

impl<P, R> Drop for ClaimedJob<P, R> {
    fn drop(&mut self) {
        drop(self.payload.take());
        if let Some(cell) = self.cell.take() {
            deliver(&cell, None);
        }
    }
}

impl<P, R> fmt::Debug for ClaimedJob<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedJob").field("is_abandoned", &self.is_abandoned()).finish()
    }
}
