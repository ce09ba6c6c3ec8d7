//! The innermost loop: adds the product of a few rows of A and a few panels of B to tiles of sums. One order of sums for
//! every number of rows and panels, so that edges give the bits that full tiles give. Only the driver calls it.

use super::finish::{Finish, Place, Tile};
use super::{PANEL_COLUMNS, ROW_STRIDE, TILE_ROWS};
use crate::float::Element;
use crate::isa::{Instructions, Portable};

/// Implemented for each instruction set.
pub(crate) trait Microkernel {
    /// For each panel p and row r < `ROWS`: `sums[p][r][c] += a[r * ROW_STRIDE + k] * b[p][k * 16 + c]`, k ascending.
    fn accumulate<E: Element, const ROWS: usize, const PANELS: usize>(
        self,
        a: &[f32],
        b: [&[E]; PANELS],
        sums: &mut [Tile; PANELS],
    );

    /// One depth block of one panel for the rows of `place`: the sums begin from `from` (or, without, go on in `tile`), and
    /// end in `finish` (or, without, in `tile`). What `tile` holds afterwards matters only without `finish`.
    #[inline(always)]
    fn tile<E: Element>(
        self,
        place: Place,
        a: &[f32],
        b: &[f32],
        from: Option<&[f32; PANEL_COLUMNS]>,
        tile: &mut Tile,
        finish: Option<&mut Finish<'_, E>>,
    ) where
        Self: Instructions,
    {
        if let Some(from) = from {
            *tile = [*from; TILE_ROWS];
        }
        let sums = std::array::from_mut(tile);
        match place.rows {
            1 => self.accumulate::<f32, 1, 1>(a, [b], sums),
            2 => self.accumulate::<f32, 2, 1>(a, [b], sums),
            3 => self.accumulate::<f32, 3, 1>(a, [b], sums),
            4 => self.accumulate::<f32, 4, 1>(a, [b], sums),
            5 => self.accumulate::<f32, 5, 1>(a, [b], sums),
            _ => self.accumulate::<f32, 6, 1>(a, [b], sums),
        }
        if let Some(finish) = finish {
            finish.store(self, tile, place);
        }
    }
}

impl Microkernel for Portable {
    #[inline(always)]
    fn accumulate<E: Element, const ROWS: usize, const PANELS: usize>(
        self,
        a: &[f32],
        b: [&[E]; PANELS],
        sums: &mut [Tile; PANELS],
    ) {
        for (b, sums) in b.iter().zip(sums) {
            for (k, b) in b.chunks_exact(PANEL_COLUMNS).enumerate() {
                let mut wide = [0.0; PANEL_COLUMNS];
                E::widen(self, b, &mut wide);
                for (row, sums) in sums.iter_mut().take(ROWS).enumerate() {
                    let a = a[row * ROW_STRIDE + k];
                    for (sum, b) in sums.iter_mut().zip(wide) {
                        *sum = self.mul_add(a, b, *sum);
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2;
