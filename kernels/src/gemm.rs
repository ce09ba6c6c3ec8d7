//! Matrix products `C[M,N] = activation(A[M,K] B[K,N] + bias + residual)` with halves or floats stored and floats summed.
//! The sum of an output runs from its bias over k = 0, 1, ..., K-1 in one chain, whatever M and however the work is cut:
//! a row gives the same bits alone and in any batch. Convolutions and dense layers call it.
//!
//! Blocking after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): 6x16 tiles in
//! registers, a 16-column panel of B in the first-level cache, a block of rows of A in the second.

mod driver;
mod finish;
mod microkernel;
mod panels;
mod rows;

use std::ops::Range;

use crate::activation::Activation;
use crate::float::{Floats, FloatsMut};
use crate::isa::Isa;

use driver::{Blocking, Run};
pub(crate) use microkernel::Microkernel;
pub use panels::{PackedWeights, Panels, Storage, pack_panels, panels_len};
pub(crate) use panels::{PanelList, fill_panels};
pub use rows::{MatrixRows, RowSource};

/// Columns of B that lie together, and of C that a tile covers.
pub const PANEL_COLUMNS: usize = 16;

/// Rows of C that a tile covers.
const TILE_ROWS: usize = 6;

/// How much of K is summed at a time.
const DEPTH_BLOCK: usize = 256;

/// Floats between rows of packed A: off the powers of two, so that rows do not fall into the same cache sets.
const ROW_STRIDE: usize = DEPTH_BLOCK + 8;

/// A matrix product apart from the rows it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct Gemm<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// B.
    pub panels: Panels<'a>,
    /// What the sums of each column start from, N long; zero if absent.
    pub bias: Option<&'a [f32]>,
    /// What is done to each finished sum.
    pub activation: Activation,
}

/// Where the rows of C that are computed lie: column `c` of the `r`-th of them at `offset + r * stride + c`.
#[derive(Debug)]
pub struct Destination<'a> {
    /// The memory, at least up to the last element of the last row.
    pub values: FloatsMut<'a>,
    /// Elements between the starts of rows.
    pub stride: usize,
    /// Where the first of the rows starts.
    pub offset: usize,
}

impl Gemm<'_> {
    /// Computes `rows` of C. `residual` lies as C does (same type, stride and offset) and is added before the activation;
    /// `scratch` has at least [`gemm_scratch_bytes`] bytes, aligned to 64, of any content.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(
        &self,
        rows: Range<usize>,
        source: &dyn RowSource,
        residual: Option<Floats<'_>>,
        to: Destination<'_>,
        scratch: &mut [u8],
    ) {
        let columns = self.panels.columns();
        assert!(self.bias.is_none_or(|bias| bias.len() == columns), "a bias has one value a column");
        if rows.is_empty() || columns == 0 {
            return;
        }
        let (stride, offset) = (to.stride, to.offset);
        assert!(offset + (rows.len() - 1) * stride + columns <= to.values.len(), "the destination holds all rows");
        assert!(residual.is_none_or(|residual| residual.len() >= to.values.len()), "a residual lies as C does");
        let blocking = Blocking::new(rows.len(), self.panels.depth(), columns);
        let scratch = bytemuck::cast_slice_mut(scratch);
        match (to.values, residual) {
            (FloatsMut::F16(out), None) => {
                self.isa.run(Run { gemm: self, blocking, rows, source, residual: None, out, stride, offset, scratch });
            }
            (FloatsMut::F32(out), None) => {
                self.isa.run(Run { gemm: self, blocking, rows, source, residual: None, out, stride, offset, scratch });
            }
            (FloatsMut::F16(out), Some(Floats::F16(residual))) => {
                let residual = Some(residual);
                self.isa.run(Run { gemm: self, blocking, rows, source, residual, out, stride, offset, scratch });
            }
            (FloatsMut::F32(out), Some(Floats::F32(residual))) => {
                let residual = Some(residual);
                self.isa.run(Run { gemm: self, blocking, rows, source, residual, out, stride, offset, scratch });
            }
            (out, Some(residual)) => crate::float::mixed_types(&residual, &out),
        }
    }
}

/// Bytes of scratch that suffice for products of up to `rows` rows.
pub fn gemm_scratch_bytes(rows: usize, depth: usize, columns: usize) -> usize {
    Blocking::scratch_floats(rows, depth, columns).saturating_mul(size_of::<f32>())
}
