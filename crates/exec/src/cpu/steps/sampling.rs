//! Operations on images: sampled at a grid's positions, regions pooled, blocks added up. Resizing is its own file.

use insula_core::{DType, Result};
use insula_kernels::Isa;
use insula_kernels::col2im::{BlockAxis, Col2Im};
use insula_kernels::grid_sample::{Border, GridSample, MAX_SPATIAL, Sampling};
use insula_kernels::roi_align::{RoiAlign, RoiPooling};
use insula_model::op::sampling;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::steps::resize;
use crate::cpu::tensor::indices;
use crate::error::ExecError;

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, sampling: &sampling::Sampling) -> Result<Box<dyn Step>> {
    match sampling {
        sampling::Sampling::Resize(resize) => resize::lower(lowering, resize),
        sampling::Sampling::Grid(grid) => grid_sample(lowering, grid),
        sampling::Sampling::RoiAlign(roi) => roi_align(lowering, roi),
        sampling::Sampling::Col2Im(col2im) => add_blocks(lowering, col2im),
    }
}

#[derive(Debug)]
struct GridStep {
    isa: Isa,
    sample: GridSample,
    dtype: DType,
    grid: DType,
    tiles: Tiles,
}

fn grid_sample(lowering: &Lowering<'_>, grid: &sampling::GridSample) -> Result<Box<dyn Step>> {
    let (input, output) = (lowering.input(0)?, lowering.output()?);
    let &[_, ref image @ .., channels] = input.shape.dims() else { return Err(broken("its input holds no images")) };
    let &[images, ref pixels @ .., _] = output.shape.dims() else { return Err(broken("its output holds no images")) };
    if image.is_empty() || image.len() > MAX_SPATIAL {
        return Err(broken(format!("images of {} spatial axes", image.len())));
    }
    let (sampling, around) = match grid.interpolation {
        sampling::GridInterpolation::Nearest => (Sampling::Nearest, 1),
        sampling::GridInterpolation::Linear => (Sampling::Linear, 2usize),
        sampling::GridInterpolation::Cubic => (Sampling::Cubic, 4),
    };
    let border = match grid.border {
        sampling::Border::Zeros => Border::Zeros,
        sampling::Border::Edge => Border::Edge,
        sampling::Border::Reflection => Border::Reflection,
    };
    let (image, pixels) = (image.to_vec(), pixels.iter().product());
    let row_work = around.pow(image.len() as u32) * (channels + 16);
    let sample = GridSample { image, channels, pixels, sampling, border, align_corners: grid.align_corners };
    let tiles = Tiles::new(images * pixels, row_work, 1);
    Ok(Box::new(GridStep { isa: lowering.isa, sample, dtype: input.dtype, grid: lowering.input(1)?.dtype, tiles }))
}

impl Step for GridStep {
    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (input, grid) = (tensors.floats(0, self.dtype)?, tensors.floats(1, self.grid)?);
        self.tiles.each(stop, |rows| {
            self.sample.run(self.isa, rows, input, grid, tensors.output(self.dtype)?);
            Ok(())
        })
    }
}

#[derive(Debug)]
struct RoiStep {
    isa: Isa,
    roi: RoiAlign,
    dtypes: [DType; 3],
    tiles: Tiles,
}

fn roi_align(lowering: &Lowering<'_>, roi: &sampling::RoiAlign) -> Result<Box<dyn Step>> {
    let (input, output) = (lowering.input(0)?, lowering.output()?);
    let &[images, height, width, channels] = input.shape.dims() else {
        return Err(broken("its input holds no images"));
    };
    let sampling::RoiAlign { output: size, max, sampling_ratio, spatial_scale, half_pixel } = *roi;
    let roi = RoiAlign {
        images,
        image: [height, width],
        channels,
        output: size,
        pooling: if max { RoiPooling::Max } else { RoiPooling::Average },
        sampling_ratio,
        spatial_scale,
        half_pixel,
    };
    let rows = output.shape.elements() / channels.max(1);
    // where a region says how many samples it takes, a bin seldom has more than this
    let samples = if sampling_ratio == 0 { 16 } else { sampling_ratio };
    let tiles = Tiles::new(rows, samples * samples * 4 * (channels + 8), 1);
    let dtypes = [input.dtype, lowering.input(1)?.dtype, lowering.input(2)?.dtype];
    Ok(Box::new(RoiStep { isa: lowering.isa, roi, dtypes, tiles }))
}

impl Step for RoiStep {
    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let [dtype, regions, images] = self.dtypes;
        let (input, regions) = (tensors.floats(0, dtype)?, tensors.floats(1, regions)?);
        let images = indices(images, tensors.input(2)?)?;
        self.tiles
            .each(stop, |rows| Ok(self.roi.run(self.isa, rows, input, regions, images, tensors.output(dtype)?)?))
    }
}

#[derive(Debug)]
struct Col2ImStep {
    isa: Isa,
    col2im: Col2Im,
    dtype: DType,
    tiles: Tiles,
}

fn add_blocks(lowering: &Lowering<'_>, col2im: &sampling::Col2Im) -> Result<Box<dyn Step>> {
    let blocks = col2im.blocks().ok_or_else(|| broken("its blocks are larger than its image"))?;
    let axis = |index: usize| BlockAxis {
        image: col2im.image[index],
        block: col2im.block[index],
        blocks: blocks[index],
        dilation: col2im.dilations[index],
        stride: col2im.strides[index],
        pad: col2im.pads[index][0],
    };
    let kernel = Col2Im { axes: (0..blocks.len()).map(axis).collect() };
    let tiles = Tiles::new(lowering.output()?.shape.elements(), kernel.block_elements() * 16, 1);
    Ok(Box::new(Col2ImStep { isa: lowering.isa, col2im: kernel, dtype: lowering.input(0)?.dtype, tiles }))
}

impl Step for Col2ImStep {
    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        self.tiles.each(stop, |elements| {
            self.col2im.run(self.isa, elements, input, tensors.output(self.dtype)?);
            Ok(())
        })
    }
}
