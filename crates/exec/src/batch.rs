//! What a batch brings to a plan: the slices of its requests, and the question whether to go on. Workers make these for one
//! run; nothing of them outlives it.

use std::fmt;

use smallvec::SmallVec;

/// One request of a batch.
#[derive(Debug)]
pub struct EntryIo<'a> {
    /// Its rows, at least 1.
    pub rows: usize,
    /// The bytes of all inputs, in the model's order.
    pub inputs: SmallVec<[&'a [u8]; 2]>,
    /// Room for the outputs, in the model's order; `None` for those that are not wanted.
    pub outputs: SmallVec<[Option<&'a mut [u8]>; 2]>,
}

/// The requests of a batch. Their rows together are at most the plan's bucket.
#[derive(Debug, Default)]
pub struct BatchIo<'a> {
    /// The requests; the first one's rows come first.
    pub entries: SmallVec<[EntryIo<'a>; 8]>,
}

impl BatchIo<'_> {
    /// The rows of all entries.
    pub fn rows(&self) -> usize {
        self.entries.iter().fold(0, |rows, entry| rows.saturating_add(entry.rows))
    }
}

/// Asked between steps and between tiles of long steps. What it does before it answers is its own affair: a worker can run a
/// short batch of somebody else there, in another arena.
pub trait StopPoint {
    /// Whether to end the run here, with [`ExecError::Stopped`](crate::ExecError::Stopped).
    fn should_stop(&mut self) -> bool;
}

impl<F: FnMut() -> bool> StopPoint for F {
    fn should_stop(&mut self) -> bool {
        self()
    }
}

impl fmt::Debug for dyn StopPoint + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopPoint")
    }
}
