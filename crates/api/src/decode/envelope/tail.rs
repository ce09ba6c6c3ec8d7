//! The binary tail of a request: which bytes belong to which input. They are given out only when the whole text is known to
//! be good, so that a wrong length header is told as that and not as damaged tensors. The envelope owns it.

use std::collections::VecDeque;
use std::ops::Range;

use insula_core::{CheckedTensor, Error, Result, TensorClaim, TensorSink};

/// The inputs with data in the tail, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Each with its bytes, counted from the start of the tail.
    inputs: VecDeque<(TensorClaim, Range<usize>)>,
    length: usize,
}

impl Tail {
    /// The next `size` bytes belong to the input of `claim`.
    pub(super) fn add(&mut self, claim: TensorClaim, size: usize) -> Result<()> {
        let start = self.length;
        let Some(end) = start.checked_add(size) else { return Err(too_short(&claim, size, 0)) };
        self.length = end;
        self.inputs.push_back((claim, start..end));
        Ok(())
    }

    /// Checks that the inputs have all of the `length` bytes that there are, and no more.
    pub(super) fn check(&self, length: usize) -> Result<()> {
        if let Some((claim, range)) = self.inputs.iter().find(|(_, range)| range.end > length) {
            return Err(too_short(claim, range.len(), length.saturating_sub(range.start)));
        }
        let unused = length - self.length;
        if unused == 0 {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{unused} bytes are left over after the last binary tensor: the inputs' `binary_data_size` must add up to the body \
             without its JSON text"
        )))
    }

    /// Takes the next tensor in place and passes it through the wall; `None` when there is none left. The tail starts at
    /// `text_length` of the body and must have been checked.
    pub(super) fn next(&mut self, sink: &mut dyn TensorSink, text_length: usize) -> Result<Option<CheckedTensor>> {
        let Some((claim, range)) = self.inputs.pop_front() else { return Ok(None) };
        let slot = sink.adopt(text_length + range.start..text_length + range.end)?;
        claim.verify(sink.slot(slot), slot).map(Some)
    }
}

fn too_short(claim: &TensorClaim, size: usize, left: usize) -> Error {
    Error::invalid(format!(
        "input `{}` has `binary_data_size` {size}, but only {left} bytes of binary data are left for it",
        claim.name()
    ))
}
