//! Matrix products of integers and FP64, plainly as these types compute. Leading dimensions broadcast as numpy has it.

use insula_core::{DType, Result};
use insula_kernels::elementwise::Broadcast;
use insula_kernels::product::{Multiplicand, product};

use super::matmul::{Sizes, sizes};
use crate::batch::StopPoint;
use crate::cpu::lower::Lowering;
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::{typed, typed_mut};
use crate::error::ExecError;

/// Operations that a multiplication is worth.
const PRODUCT_WORK: usize = 4;

#[derive(Debug)]
struct ExactMatMulStep {
    dtype: DType,
    sizes: Sizes,
    pairs: Broadcast,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>) -> Result<Box<dyn Step>> {
    let (sizes, pairs) = sizes(lowering)?;
    let tiles = Tiles::new(sizes.rows, sizes.depth * sizes.columns * PRODUCT_WORK, 1);
    Ok(Box::new(ExactMatMulStep { dtype: lowering.output()?.dtype, sizes, pairs, tiles }))
}

impl Step for ExactMatMulStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        match self.dtype {
            DType::Int32 => self.compute::<i32>(tensors, stop),
            DType::Int64 => self.compute::<i64>(tensors, stop),
            DType::Uint32 => self.compute::<u32>(tensors, stop),
            DType::Uint64 => self.compute::<u64>(tensors, stop),
            DType::Fp64 => self.compute::<f64>(tensors, stop),
            other => Err(ExecError::misfit(format!("a product was given {other}"))),
        }
    }
}

impl ExactMatMulStep {
    fn compute<T: Multiplicand>(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let Sizes { rows, depth, columns, products } = self.sizes;
        let (left, right) = (typed::<T>(tensors.input(0)?)?, typed::<T>(tensors.input(1)?)?);
        let output = typed_mut::<T>(tensors.output)?;
        for index in 0..products {
            if index > 0 && stop.should_stop() {
                return Err(ExecError::Stopped);
            }
            let [first, second] = self.pairs.pair(index);
            let left = &left[first * rows * depth..(first + 1) * rows * depth];
            let right = &right[second * depth * columns..(second + 1) * depth * columns];
            let output = &mut output[index * rows * columns..(index + 1) * rows * columns];
            self.tiles.each(stop, |rows| {
                product(rows, (depth, columns), left, right, output);
                Ok(())
            })?;
        }
        Ok(())
    }
}
