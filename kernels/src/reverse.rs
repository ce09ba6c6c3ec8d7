//! Turns the first entries of sequences around, each sequence by its own length. Elements are bytes.

use std::ops::Range;

use crate::index::{IndexError, Indices};

/// Sequences in a tensor seen as `[outer, a, between, b, inner]`, where `a` is the time and `b` the batch or the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReverseSequence {
    /// Sizes of the two axes.
    pub axes: [usize; 2],
    /// Positions between the two axes.
    pub between: usize,
    /// Whether the first of them is the time.
    pub time_first: bool,
    /// Bytes inside both.
    pub inner_bytes: usize,
}

impl ReverseSequence {
    /// Writes the entries `entries`, counted through `[outer, a, between, b]`, of `out`. `lengths` has one for each batch; 0 to the
    /// size of the time axis.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(
        &self,
        entries: Range<usize>,
        input: &[u8],
        lengths: Indices<'_>,
        out: &mut [u8],
    ) -> Result<(), IndexError> {
        let ReverseSequence { axes: [first, second], between, time_first, inner_bytes } = *self;
        let (times, stride) = if time_first { (first, between * second) } else { (second, 1) };
        for entry in entries {
            let (a, b) = (entry / (second * between) % first, entry % second);
            let (time, batch) = if time_first { (a, b) } else { (b, a) };
            let length = lengths.raw(batch);
            let length = usize::try_from(length).ok().filter(|length| *length <= times);
            let Some(length) = length else {
                return Err(IndexError { index: lengths.raw(batch), size: times });
            };
            let from = if time < length { entry - time * stride + (length - 1 - time) * stride } else { entry };
            let (to, from) = (entry * inner_bytes, from * inner_bytes);
            out[to..to + inner_bytes].copy_from_slice(&input[from..from + inner_bytes]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_turns_by_its_length() {
        let input: Vec<u8> = (0..12).collect();
        let mut out = [0; 12];
        let mut reverse = ReverseSequence { axes: [4, 3], between: 1, time_first: true, inner_bytes: 1 };
        reverse.run(0..12, &input, Indices::I64(&[0, 2, 4]), &mut out).unwrap();
        assert_eq!(out, [0, 4, 11, 3, 1, 8, 6, 7, 5, 9, 10, 2]);
        reverse.time_first = false;
        reverse.run(0..12, &input, Indices::I32(&[1, 2, 3, 0]), &mut out).unwrap();
        assert_eq!(out, [0, 1, 2, 4, 3, 5, 8, 7, 6, 9, 10, 11]);
        for length in [-1, 4] {
            assert!(reverse.run(0..12, &input, Indices::I64(&[1, 2, 3, length]), &mut out).is_err());
        }
    }

    #[test]
    fn axes_between_and_inside_stay() {
        let input: Vec<u8> = (0..16).collect();
        let mut out = [0; 16];
        let reverse = ReverseSequence { axes: [2, 2], between: 2, time_first: true, inner_bytes: 2 };
        reverse.run(0..8, &input, Indices::I64(&[2, 1]), &mut out).unwrap();
        assert_eq!(out, [8, 9, 2, 3, 12, 13, 6, 7, 0, 1, 10, 11, 4, 5, 14, 15]);
    }
}
