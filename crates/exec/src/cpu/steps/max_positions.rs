//! Where the largest elements of windows lie.

use insula_core::{DType, Result};
use insula_kernels::Window;
use insula_kernels::pool::{PixelOrder, max_positions};
use insula_model::MaxPositions;

use super::window::kernel_window;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::tensor::typed_mut;
use crate::error::ExecError;

/// Operations that a tap is worth.
const TAP_WORK: usize = 8;

#[derive(Debug)]
struct MaxPositionsStep {
    dtype: DType,
    order: PixelOrder,
    window: Window,
    channels: usize,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: &MaxPositions) -> Result<Box<dyn Step>> {
    let (input, output) = (lowering.input(0)?, lowering.output()?);
    let dims = input.shape.dims();
    let window = kernel_window(&op.window, dims, output.shape.dims())
        .ok_or_else(|| broken("its images have not three to five dimensions"))?;
    let (images, channels) = (dims[0], dims[dims.len() - 1]);
    let order = if op.column_major { PixelOrder::ColumnMajor } else { PixelOrder::RowMajor };
    let tiles = Tiles::new(window.output_pixels(images), window.taps() * channels * TAP_WORK, 1);
    Ok(Box::new(MaxPositionsStep { dtype: input.dtype, order, window, channels, tiles }))
}

impl Step for MaxPositionsStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let output = typed_mut::<i64>(tensors.output)?;
        self.tiles.each(stop, |rows| {
            max_positions(&self.window, self.order, self.channels, rows, input, output);
            Ok(())
        })
    }
}
