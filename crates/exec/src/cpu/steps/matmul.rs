//! Matrix products with what is fused to them: by weights that were packed at load, or by a matrix that is packed into
//! scratch at each run. Leading dimensions broadcast as numpy has it.

use std::ops::Range;
use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::elementwise::Broadcast;
use insula_kernels::gemm::{
    Destination, Gemm, MatrixRows, PackedWeights, Panels, gemm_scratch_bytes, pack_panels, panels_len,
};
use insula_kernels::{Activation, Floats, FloatsMut, Isa};
use insula_model::Source;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors};
use crate::cpu::tensor::{floats_mut, typed_mut};
use crate::error::ExecError;

/// Rows that the kernel likes to have at once.
const GOOD_ROWS: usize = 96;

/// Rows of the kernel's tiles.
const TILE_ROWS: usize = 6;

/// Whole products stay together unless they are large.
fn granules(products: usize, rows: usize) -> Granules {
    match products {
        2.. if rows <= 2 * GOOD_ROWS => Granules { good: rows.max(1), least: rows.max(1) },
        _ => Granules { good: GOOD_ROWS, least: TILE_ROWS },
    }
}

/// Sizes of a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Rows, depth and columns of one product of matrices.
    pub rows: usize,
    pub depth: usize,
    pub columns: usize,
    /// How many such products.
    pub products: usize,
}

/// The sizes of a step, and which matrices of the operands meet in each product.
pub(super) fn sizes(lowering: &Lowering<'_>) -> Result<(Sizes, Broadcast)> {
    let (left, right) = (lowering.input(0)?.shape.dims(), lowering.input(1)?.shape.dims());
    let (&[ref left_batch @ .., rows, depth], &[ref right_batch @ .., _, columns]) = (left, right) else {
        return Err(broken(format!("{left:?} x {right:?} is not a product of matrices")));
    };
    // One matrix on the right: all leading dimensions of the left are rows of one product.
    let (rows, left_batch) = match right_batch {
        [] => (left_batch.iter().product::<usize>() * rows, &[][..]),
        _ => (rows, left_batch),
    };
    let pairs = Broadcast::new(left_batch, right_batch, false)
        .ok_or_else(|| broken(format!("{left:?} and {right:?} do not broadcast")))?;
    Ok((Sizes { rows, depth, columns, products: pairs.rows() * pairs.columns() }, pairs))
}

#[derive(Debug)]
struct MatMulStep {
    isa: Isa,
    dtype: DType,
    sizes: Sizes,
    pairs: Broadcast,
    /// `None`: the right-hand side is an operand.
    weights: Option<Arc<[PackedWeights]>>,
    bias: Option<Arc<[f32]>>,
    activation: Activation,
    tiles: SharedTiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>) -> Result<Box<dyn Step>> {
    let (sizes, pairs) = sizes(lowering)?;
    let weights = match lowering.input(1)?.source {
        Source::Constant(id) => Some(lowering.weights.matrices(id)?),
        Source::Input(_) | Source::Buffer(_) => None,
    };
    let dtype = lowering.output()?.dtype;
    let Sizes { rows, depth, columns, products } = sizes;
    let tiles = SharedTiles::new(lowering.threads, products * rows, depth * columns, granules(products, rows));
    let (isa, bias, activation) = (lowering.isa, lowering.bias()?, lowering.activation());
    Ok(Box::new(MatMulStep { isa, dtype, sizes, pairs, weights, bias, activation, tiles }))
}

impl Step for MatMulStep {
    fn scratch_bytes(&self) -> usize {
        let product = gemm_scratch_bytes(self.tiles.tile(), self.sizes.depth, self.sizes.columns);
        self.tiles.scratch_bytes(self.panel_bytes().saturating_add(product))
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let left = tensors.floats(0, self.dtype)?;
        let right = if self.weights.is_none() { Some(tensors.floats(1, self.dtype)?) } else { None };
        let residual = tensors.residual(if right.is_some() { 2 } else { 1 }, self.dtype)?;
        let StepTensors { output, scratch, threads, .. } = tensors;
        self.tiles.each(threads, stop, output, scratch, |rows, output, scratch| {
            let elements = rows.start * self.sizes.columns..rows.end * self.sizes.columns;
            let residual = residual.map(|residual| residual.range(elements));
            self.rows(rows, Operands { left, right, residual }, floats_mut(self.dtype, output)?, scratch)
        })
    }
}

/// What a product reads.
#[derive(Clone, Copy)]
struct Operands<'a> {
    left: Floats<'a>,
    right: Option<Floats<'a>>,
    /// For the rows that are computed alone.
    residual: Option<Floats<'a>>,
}

impl MatMulStep {
    /// Computes `rows`, counted through all products, into `out`, which is those alone.
    fn rows(
        &self,
        rows: Range<usize>,
        operands: Operands<'_>,
        mut out: FloatsMut<'_>,
        scratch: &mut [u8],
    ) -> Result<(), ExecError> {
        let (packed, scratch) = scratch.split_at_mut(self.panel_bytes());
        let Sizes { rows: height, depth, columns, .. } = self.sizes;
        let mut row = rows.start;
        while row < rows.end {
            let (product, first) = (row / height, row % height);
            let part = first..(first + rows.end - row).min(height);
            let [left_matrix, right_matrix] = self.pairs.pair(product);
            let panels = self.panels(operands.right, right_matrix, packed)?;
            let gemm = Gemm { isa: self.isa, panels, bias: self.bias.as_deref(), activation: self.activation };
            let values = operands.left.range(left_matrix * height * depth..operands.left.len());
            let source = MatrixRows { isa: self.isa, values, row_stride: depth, depth_stride: 1 };
            let offset = (row - rows.start) * columns;
            row += part.len();
            let to = Destination { values: out.reborrow(), stride: columns, offset };
            gemm.run(part, &source, operands.residual, to, scratch);
        }
        Ok(())
    }

    /// Bytes of a right-hand side that is packed at each run, rounded up to cache lines.
    fn panel_bytes(&self) -> usize {
        match self.weights {
            Some(_) => 0,
            None => (panels_len(self.sizes.depth, self.sizes.columns) * size_of::<f32>()).next_multiple_of(64),
        }
    }

    fn panels<'a>(
        &'a self,
        right: Option<Floats<'a>>,
        matrix: usize,
        packed: &'a mut [u8],
    ) -> Result<Panels<'a>, ExecError> {
        if let Some(weights) = &self.weights {
            let weights =
                weights.get(matrix).ok_or_else(|| ExecError::misfit(format!("matrix {matrix} is missing")))?;
            return Ok(weights.panels());
        }
        let right = right.ok_or_else(|| ExecError::misfit("the right-hand side is missing"))?;
        let Sizes { depth, columns, .. } = self.sizes;
        let first = matrix * depth * columns;
        let to = &mut typed_mut::<f32>(packed)?[..panels_len(depth, columns)];
        pack_panels(self.isa, right.range(first..first + depth * columns), (depth, columns), to);
        Ok(Panels::new(depth, columns, Floats::F32(to)))
    }
}
