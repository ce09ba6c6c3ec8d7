//! The serving side of a job until it is claimed: the tenant's loop, then the shard. There is one [`Job`] for a cell at any
//! time; dropping it lets the caller know.

use std::fmt;

use super::cell::{JobCell, Stage};
use super::claimed::ClaimedJob;
use crate::shard::sync::Arc;

/// A job that has not been claimed.
pub struct Job<P, R> {
    /// Taken when the job is claimed.
    cell: Option<Arc<JobCell<P, R>>>,
}

impl<P, R> Job<P, R> {
    pub(super) fn new(cell: Arc<JobCell<P, R>>) -> Self {
        Job { cell: Some(cell) }
    }

    /// Works on the payload, for a step of decoding. `None` if the caller has withdrawn the job: then the payload is gone.
    pub fn with_payload<T>(&mut self, work: impl FnOnce(&mut P) -> T) -> Option<T> {
        self.cell.as_ref().and_then(|cell| cell.with_payload(work))
    }

    /// Marks the job as queued, before it is given to a shard. `false` if the caller has withdrawn it: then it is to be
    /// dropped.
    pub fn enqueue(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.step(Stage::New, Stage::Queued))
    }

    /// Whether the caller has withdrawn the job.
    pub fn is_withdrawn(&self) -> bool {
        self.cell.as_ref().is_none_or(|cell| cell.is_withdrawn())
    }

    /// Takes the job to answer it, whether it was queued or not. Gives it back if the caller has withdrawn it.
    pub fn claim(mut self) -> Result<ClaimedJob<P, R>, Job<P, R>> {
        let won = self
            .cell
            .as_ref()
            .is_some_and(|cell| cell.step(Stage::Queued, Stage::Claimed) || cell.step(Stage::New, Stage::Claimed));
        match if won { self.cell.take() } else { None } {
            Some(cell) => Ok(ClaimedJob::new(cell)),
            None => Err(self),
        }
    }
}

impl<P, R> Drop for Job<P, R> {
    /// A job that is still new keeps its payload: the caller may take it back. One that was queued is over.
    fn drop(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        if cell.step(Stage::Queued, Stage::Done) {
            drop(cell.take_payload());
        }
        // Who withdrew a job does not wait for it.
        if !cell.is_withdrawn() {
            cell.lose();
        }
    }
}

impl<P, R> fmt::Debug for Job<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("stage", &self.cell.as_ref().map(|cell| cell.stage())).finish()
    }
}
