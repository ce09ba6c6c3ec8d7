//! Indices that come with a request: read as ONNX has them, negative ones from the end, and checked against the axis they
//! point into. Nothing here touches the tensor itself; gathering and scattering ask before they do.

use std::fmt;

/// Indices, of either type that ONNX allows.
#[derive(Debug, Clone, Copy)]
pub enum Indices<'a> {
    /// Stored in 32 bits.
    I32(&'a [i32]),
    /// Stored in 64 bits.
    I64(&'a [i64]),
}

/// An index beyond its axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexError {
    /// The index as the request has it.
    pub index: i64,
    /// The size of the axis it points into.
    pub size: usize,
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IndexError { index, size } = self;
        write!(f, "index {index} is out of range for an axis of {size}, expected -{size} to {size} - 1")
    }
}

impl std::error::Error for IndexError {}

impl Indices<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Indices::I32(indices) => indices.len(),
            Indices::I64(indices) => indices.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Index `at` as it is stored. Panics when it is out of bounds.
    #[inline(always)]
    pub fn raw(&self, at: usize) -> i64 {
        match self {
            Indices::I32(indices) => i64::from(indices[at]),
            Indices::I64(indices) => indices[at],
        }
    }

    /// The position in an axis of `size` that index `at` means.
    #[inline(always)]
    pub(crate) fn resolve(&self, at: usize, size: usize) -> Result<usize, IndexError> {
        let index = self.raw(at);
        let position = if index < 0 { index.wrapping_add(size as i64) } else { index };
        if (position as u64) < size as u64 { Ok(position as usize) } else { Err(IndexError { index, size }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_indices_count_from_the_end_and_no_others_pass() {
        let indices = Indices::I64(&[0, 2, -1, -3, 3, -4, i64::MIN, i64::MAX]);
        let found: Vec<Option<usize>> = (0..8).map(|at| indices.resolve(at, 3).ok()).collect();
        assert_eq!(found, [Some(0), Some(2), Some(2), Some(0), None, None, None, None]);
        assert_eq!(Indices::I32(&[5]).resolve(0, 5), Err(IndexError { index: 5, size: 5 }));
        assert!(Indices::I32(&[0]).resolve(0, 0).is_err());
    }
}
