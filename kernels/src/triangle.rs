//! Copies the upper or lower triangles of matrices; the rest is zero. Elements are bits of a size.

use std::ops::Range;

/// Which part of a matrix is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triangle {
    /// A matrix's rows.
    pub rows: usize,
    /// A matrix's columns.
    pub columns: usize,
    /// Whether what is on and above the diagonal is kept, or what is on and below it.
    pub upper: bool,
}

impl Triangle {
    /// Writes the rows `rows`, counted through all matrices, of `out`; the diagonal begins `offset` columns to the right. Elements
    /// have `size` bytes, all tensors are whole.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, size: usize, offset: i64, rows: Range<usize>, input: &[u8], out: &mut [u8]) {
        let bytes = self.columns * size;
        for row in rows {
            let diagonal = ((row % self.rows) as i64).saturating_add(offset);
            let kept = match self.upper {
                true => self.column(diagonal)..self.columns,
                false => 0..self.column(diagonal.saturating_add(1)),
            };
            let (input, out) = (&input[row * bytes..][..bytes], &mut out[row * bytes..][..bytes]);
            let kept = kept.start * size..kept.end * size;
            out[..kept.start].fill(0);
            out[kept.clone()].copy_from_slice(&input[kept.clone()]);
            out[kept.end..].fill(0);
        }
    }

    fn column(&self, at: i64) -> usize {
        usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_beyond_the_diagonal_is_zero(rows in 1usize..5, columns in 1usize..5, offset in -6i64..7, upper: bool) {
            let input: Vec<u16> = (1..=2 * (rows * columns) as u16).collect();
            let mut out = vec![99u16; input.len()];
            let triangle = Triangle { rows, columns, upper };
            triangle.run(2, offset, 0..2 * rows, bytemuck::cast_slice(&input), bytemuck::cast_slice_mut(&mut out));
            for (at, found) in out.iter().enumerate() {
                let (row, column) = ((at / columns % rows) as i64, (at % columns) as i64);
                let kept = if upper { column >= row + offset } else { column <= row + offset };
                prop_assert_eq!(*found, if kept { input[at] } else { 0 });
            }
        }
    }

    #[test]
    fn offsets_may_be_anything() {
        for (offset, expected) in [(i64::MAX, [0u8; 4]), (i64::MIN, [1, 2, 3, 4])] {
            let mut out = [9; 4];
            Triangle { rows: 2, columns: 2, upper: true }.run(1, offset, 0..2, &[1, 2, 3, 4], &mut out);
            assert_eq!(out, expected);
        }
    }
}
