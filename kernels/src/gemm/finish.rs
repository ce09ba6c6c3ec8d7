//! What happens to a tile of finished sums: residual, activation, rounding to the stored type, and the way to memory.
//! It sums nothing along K. Microkernels call it for each tile, or do the same in registers.

use super::{PANEL_COLUMNS, TILE_ROWS};
use crate::activation::Activation;
use crate::float::Element;
use crate::isa::Instructions;

/// Sums of a tile, row by row.
pub(crate) type Tile = [[f32; PANEL_COLUMNS]; TILE_ROWS];

/// Which part of the output a tile is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Rows, up to six.
    pub rows: usize,
    /// Columns, 16 but for the last panel.
    pub columns: usize,
    /// The element of the output that the corner is.
    pub at: usize,
}

/// Where tiles go and what is done to them on the way.
pub(crate) struct Finish<'a, E> {
    pub activation: Activation,
    /// The activation's bounds if it is nothing else.
    pub bounds: Option<(f32, f32)>,
    pub residual: Option<&'a [E]>,
    pub out: &'a mut [E],
    pub stride: usize,
}

impl<E: Element> Finish<'_, E> {
    /// Stores what of `tile` lies at `place`.
    #[inline(always)]
    pub(crate) fn store<I: Instructions>(&mut self, isa: I, tile: &mut Tile, place: Place) {
        for (row, sums) in tile.iter_mut().take(place.rows).enumerate() {
            let range = place.at + row * self.stride..place.at + row * self.stride + place.columns;
            if let Some(residual) = self.residual {
                let mut wide = [0.0; PANEL_COLUMNS];
                E::widen(isa, &residual[range.clone()], &mut wide[..place.columns]);
                for (sum, residual) in sums.iter_mut().zip(wide) {
                    *sum += residual;
                }
            }
            self.activation.apply(isa, sums);
            E::narrow(isa, &sums[..place.columns], &mut self.out[range]);
        }
    }
}
