//! Transposition.

use insula_core::Result;
use insula_kernels::transpose::Transpose;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors};
use crate::error::ExecError;

#[derive(Debug)]
struct TransposeStep {
    element_bytes: usize,
    transpose: Transpose,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, permutation: &[usize]) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let transpose = Transpose::new(input.shape.dims(), permutation)
        .ok_or_else(|| broken(format!("{permutation:?} is not a permutation of its axes")))?;
    let element_bytes = input.dtype.size().ok_or_else(|| broken("its elements vary in size"))?;
    Ok(Box::new(TransposeStep { element_bytes, transpose }))
}

impl Step for TransposeStep {
    fn run(&self, tensors: StepTensors<'_>, _: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        self.transpose.run(self.element_bytes, input, tensors.output);
        Ok(())
    }
}
