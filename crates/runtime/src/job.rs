//! The job cell: one request on its way from its caller to a worker and back. One atomic state says how far it is; each of its
//! transitions is won by exactly one side, which answers and counts. The cell owns the payload and the reply's place, in one
//! allocation; the caller's side holds only a [`JobHandle`].
//!
//! ```text
//! New -> Queued -> Claimed -> Done         New may also be claimed: a request that fails before it is queued is
//!    \      \         \                    answered by who claims it
//!     +------+-> Cancelled, Expired
//!                      \-> Abandoned
//! ```
//! Who admits a request makes the pair; the tenant's loop and the shard pass the [`Job`] on; a worker claims it.

mod cell;
mod claimed;
mod handle;
mod serving;

pub use claimed::{ClaimedJob, Delivery};
pub use handle::{Ended, JobHandle, JobReply};
pub use serving::Job;

use cell::JobCell;

use crate::shard::sync::Arc;

/// A new job around `payload`, and its caller's handle.
pub fn new_job<P, R>(payload: P) -> (Job<P, R>, JobHandle<P, R>) {
    let cell = Arc::new(JobCell::new(payload));
    (Job::new(cell.clone()), JobHandle::new(cell))
}

#[cfg(test)]
mod tests;
