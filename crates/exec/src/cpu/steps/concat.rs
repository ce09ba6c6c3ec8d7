//! Joins tensors along an axis.

use insula_core::Result;
use insula_kernels::concat::concat;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

#[derive(Debug)]
struct ConcatStep {
    /// Bytes of each operand's block.
    block_bytes: Vec<usize>,
    tiles: Tiles,
}

pub(super) fn lower(lowering: &Lowering<'_>, axis: usize) -> Result<Box<dyn Step>> {
    let mut block_bytes = Vec::with_capacity(lowering.step.inputs.len());
    for (index, operand) in lowering.step.inputs.iter().enumerate() {
        let dims = operand.shape.dims();
        let inner = dims.get(axis..).ok_or_else(|| broken(format!("operand {index} has no axis {axis}")))?;
        block_bytes.push(inner.iter().product::<usize>() * lowering.element_bytes(index)?);
    }
    let blocks = lowering.output()?.shape.dims()[..axis].iter().product();
    let tiles = Tiles::new(blocks, block_bytes.iter().sum(), 1);
    Ok(Box::new(ConcatStep { block_bytes, tiles }))
}

impl Step for ConcatStep {
    fn memory_bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.block_bytes)
    }

    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let StepTensors { inputs, output, .. } = tensors;
        if inputs.len() != self.block_bytes.len() {
            return Err(ExecError::misfit(format!("{} operands of {}", inputs.len(), self.block_bytes.len())));
        }
        self.tiles.each(stop, |blocks| {
            concat(blocks, &self.block_bytes, |index| inputs[index], output);
            Ok(())
        })
    }
}
