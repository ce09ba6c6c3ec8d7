//! A finished answer on its way to the caller: outputs in their tenant's memory and the encoder that writes them. It holds
//! the request's permit and leases until it is dropped, which is after the last byte. The server steps it as its socket drains.

use std::fmt;
use std::time::Duration;

use insula_core::{Encode, EncodedHead, Result};
use insula_memory::ResponseMemory;

use crate::admission::permit::Permit;

/// An answer to be written.
pub struct Reply {
    outputs: ResponseMemory,
    encode: Box<dyn Encode>,
    timings: Timings,
    _permit: Permit,
}

/// What a request's way took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// From the push to the fair queue until a worker claimed it.
    pub queue: Duration,
    /// The run of its batch.
    pub device: Duration,
    /// From admission until the outputs were there.
    pub total: Duration,
    /// The request's rows.
    pub rows: usize,
    /// All rows of the batch it ran in.
    pub batch_rows: usize,
}

impl Reply {
    pub(crate) fn new(outputs: ResponseMemory, encode: Box<dyn Encode>, timings: Timings, permit: Permit) -> Reply {
        Reply { outputs, encode, timings, _permit: permit }
    }

    /// What is known before the first byte: ask once, before the first [`Reply::step`]. Fails when an output cannot be
    /// written in the format asked for.
    pub fn head(&mut self) -> Result<EncodedHead> {
        self.encode.head(&self.outputs)
    }

    /// Writes the next bytes into `out`, at most 64 KiB, and returns how many; 0 means that all are written.
    pub fn step(&mut self, out: &mut [u8]) -> Result<usize> {
        let length = out.len().min(insula_core::codec::ENCODE_STEP_BYTES);
        self.encode.step(&self.outputs, &mut out[..length])
    }

    /// What the request's way took.
    pub fn timings(&self) -> Timings {
        self.timings
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("timings", &self.timings).finish_non_exhaustive()
    }
}
