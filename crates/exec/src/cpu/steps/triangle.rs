//! Triangles of matrices.

use insula_core::Result;
use insula_kernels::triangle::Triangle;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::typed;
use crate::error::ExecError;

#[derive(Debug)]
struct TriangleStep {
    triangle: Triangle,
    element_bytes: usize,
    tiles: Tiles,
}

pub(super) fn lower(lowering: &Lowering<'_>, upper: bool) -> Result<Box<dyn Step>> {
    let &[ref outer @ .., rows, columns] = lowering.input(0)?.shape.dims() else {
        return Err(broken("its input holds no matrices"));
    };
    let tiles = Tiles::new(outer.iter().product::<usize>() * rows, columns, 1);
    let triangle = Triangle { rows, columns, upper };
    Ok(Box::new(TriangleStep { triangle, element_bytes: lowering.element_bytes(0)?, tiles }))
}

impl Step for TriangleStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.input(0)?;
        let &[offset] = typed::<i64>(tensors.input(1)?)? else {
            return Err(ExecError::misfit("the diagonal's offset is not one number"));
        };
        self.tiles.each(stop, |rows| {
            self.triangle.run(self.element_bytes, offset, rows, input, tensors.output);
            Ok(())
        })
    }
}
