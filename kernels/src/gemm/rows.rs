//! Where a product's rows of A come from: the seam by which a convolution unfolds its input while it is packed. A source
//! writes floats; it never sees weights. The driver of the product calls it once for each block.

use std::ops::Range;

use crate::float::Floats;
use crate::isa::{Instructions, Isa, Kernel};

/// A matrix A that is read by blocks.
pub trait RowSource {
    /// Writes columns `depth` of rows `rows` as floats: row `i` of the block begins at `to[i * stride]`.
    fn pack(&self, rows: Range<usize>, depth: Range<usize>, to: &mut [f32], stride: usize);
}

/// A matrix in memory: element (r, k) at `r * row_stride + k * depth_stride`.
#[derive(Debug, Clone, Copy)]
pub struct MatrixRows<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The elements.
    pub values: Floats<'a>,
    /// Elements between rows.
    pub row_stride: usize,
    /// Elements between columns: 1 unless the matrix is read transposed.
    pub depth_stride: usize,
}

impl RowSource for MatrixRows<'_> {
    fn pack(&self, rows: Range<usize>, depth: Range<usize>, to: &mut [f32], stride: usize) {
        self.isa.run(Pack { matrix: self, rows, depth, to, stride });
    }
}

struct Pack<'a> {
    matrix: &'a MatrixRows<'a>,
    rows: Range<usize>,
    depth: Range<usize>,
    to: &'a mut [f32],
    stride: usize,
}

impl Kernel for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let Pack { matrix, rows, depth, to, stride } = self;
        if depth.is_empty() {
            return;
        }
        for (row, to) in rows.zip(to.chunks_mut(stride)) {
            let start = row * matrix.row_stride + depth.start * matrix.depth_stride;
            let to = &mut to[..depth.len()];
            match matrix.values {
                Floats::F32(values) if matrix.depth_stride == 1 => {
                    to.copy_from_slice(&values[start..start + depth.len()])
                }
                Floats::F16(values) if matrix.depth_stride == 1 => isa.widen(&values[start..start + depth.len()], to),
                values => {
                    for (k, to) in to.iter_mut().enumerate() {
                        *to = values.get(start + k * matrix.depth_stride);
                    }
                }
            }
        }
    }
}
