//! Poolings.

use insula_core::{DType, Result};
use insula_kernels::pool::{Divisor, Pooling, pool};
use insula_kernels::{Isa, Window};
use insula_model::{AveragePool, LpPool};

use super::window::kernel_window;
use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::shared_tiles::{Granules, SharedTiles};
use crate::cpu::step::{Step, StepTensors};
use crate::cpu::tensor::floats_mut;
use crate::error::ExecError;

#[derive(Debug)]
struct PoolStep {
    isa: Isa,
    dtype: DType,
    pooling: Pooling,
    window: Window,
    channels: usize,
    tiles: SharedTiles,
}

pub(in crate::cpu) fn max(lowering: &Lowering<'_>, window: &insula_model::Window) -> Result<Box<dyn Step>> {
    lower(lowering, Pooling::Max, window)
}

pub(in crate::cpu) fn average(lowering: &Lowering<'_>, pool: &AveragePool) -> Result<Box<dyn Step>> {
    let after = pool.window.pads.after;
    let divisor = match pool.count_include_pad {
        true => {
            Divisor::Padded { after: std::array::from_fn(|axis| after[axis] - pool.overhang[axis].min(after[axis])) }
        }
        false => Divisor::Inside,
    };
    lower(lowering, Pooling::Average(divisor), &pool.window)
}

pub(in crate::cpu) fn norm(lowering: &Lowering<'_>, pool: &LpPool) -> Result<Box<dyn Step>> {
    lower(lowering, Pooling::Norm { p: pool.p }, &pool.window)
}

fn lower(lowering: &Lowering<'_>, pooling: Pooling, window: &insula_model::Window) -> Result<Box<dyn Step>> {
    let (input, output) = (lowering.input(0)?, lowering.output()?);
    let dims = input.shape.dims();
    let window = kernel_window(window, dims, output.shape.dims())
        .ok_or_else(|| broken("its images have not three to five dimensions"))?;
    let (images, channels) = (dims[0], dims[dims.len() - 1]);
    let (pixels, pixel_work) = (window.output_pixels(images), window.taps() * channels);
    let tiles = SharedTiles::new(lowering.threads, pixels, pixel_work, Granules::ANY);
    Ok(Box::new(PoolStep { isa: lowering.isa, dtype: output.dtype, pooling, window, channels, tiles }))
}

impl Step for PoolStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        let StepTensors { output, threads, .. } = tensors;
        self.tiles.each(threads, stop, output, &mut [], |rows, output, _| {
            let output = floats_mut(self.dtype, output)?;
            pool(self.isa, self.pooling, &self.window, self.channels, rows, input, output);
            Ok(())
        })
    }
}
