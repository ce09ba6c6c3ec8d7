//! One-hot vectors.

use insula_core::Result;
use insula_kernels::one_hot::OneHot;

use crate::batch::StopPoint;
use crate::cpu::lower::Lowering;
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::indices;
use crate::error::ExecError;

#[derive(Debug)]
struct OneHotStep {
    one_hot: OneHot,
    element_bytes: usize,
    tiles: Tiles,
}

pub(super) fn lower(lowering: &Lowering<'_>, axis: usize, depth: usize) -> Result<Box<dyn Step>> {
    let dims = lowering.input(0)?.shape.dims();
    let (outer, inner) = dims.split_at(axis.min(dims.len()));
    let inner = inner.iter().product();
    let tiles = Tiles::new(outer.iter().product(), depth * inner, 1);
    Ok(Box::new(OneHotStep { one_hot: OneHot { depth, inner }, element_bytes: lowering.element_bytes(1)?, tiles }))
}

impl Step for OneHotStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let indices = indices(insula_core::DType::Int64, tensors.input(0)?)?;
        let values = tensors.input(1)?;
        self.tiles.each(stop, |slices| {
            self.one_hot.run(self.element_bytes, slices, indices, values, tensors.output);
            Ok(())
        })
    }
}
