//! A new size for one axis: where its positions lie on the old axis, and the weights of the old positions around them, worked
//! out once in double precision.

use insula_core::{DType, Result};
use insula_kernels::interpolate::{Taps, interpolate};
use insula_kernels::{Isa, Strip};
use insula_model::op::sampling::{Coordinates, Interpolation, Resize, Rounding};

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::cpu::steps::remap;
use crate::error::ExecError;

#[derive(Debug)]
struct InterpolateStep {
    isa: Isa,
    taps: Taps,
    strip: Strip,
    dtype: DType,
    tiles: Tiles,
}

pub(super) fn lower(lowering: &Lowering<'_>, resize: &Resize) -> Result<Box<dyn Step>> {
    let input = lowering.input(0)?;
    let dims = input.shape.dims();
    let &axis = dims.get(resize.axis).ok_or_else(|| broken(format!("it has no axis {}", resize.axis)))?;
    if let Interpolation::Nearest(rounding) = resize.interpolation
        && !matches!(resize.coordinates, Coordinates::CropAndResize { .. })
    {
        let nearest = |x: usize| Some(nearest(rounding, position(resize, axis, x), axis));
        return remap::along(lowering, resize.axis, (0..resize.size).map(nearest).collect());
    }
    let taps = taps(resize, axis);
    let inner: usize = dims[resize.axis + 1..].iter().product();
    let lines = dims[..resize.axis].iter().product::<usize>() * resize.size;
    let tiles = Tiles::new(lines, taps.most() * inner + 8, 1);
    let strip = Strip { axis, inner };
    Ok(Box::new(InterpolateStep { isa: lowering.isa, taps, strip, dtype: input.dtype, tiles }))
}

impl Step for InterpolateStep {
    fn memory_bytes(&self) -> usize {
        size_of_val(self) + self.taps.memory_bytes()
    }

    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        self.tiles.each(stop, |lines| {
            interpolate(self.isa, &self.taps, self.strip, lines, input, tensors.output(self.dtype)?);
            Ok(())
        })
    }
}

/// Where new position `x` lies on the old axis of `size` positions.
fn position(resize: &Resize, size: usize, x: usize) -> f64 {
    let (x, size, scale) = (x as f64, size as f64, resize.scale);
    // the size that the scale asks for, before it was rounded
    let exact = scale * size;
    let half_pixel = (x + 0.5) / scale - 0.5;
    match resize.coordinates {
        Coordinates::HalfPixel => half_pixel,
        Coordinates::HalfPixelSymmetric => size / 2.0 * (1.0 - resize.size as f64 / exact) + half_pixel,
        Coordinates::PytorchHalfPixel if exact == 1.0 => -0.5,
        Coordinates::PytorchHalfPixel => half_pixel,
        Coordinates::AlignCorners if exact == 1.0 => 0.0,
        Coordinates::AlignCorners => x * (size - 1.0) / (exact - 1.0),
        Coordinates::Asymmetric => x / scale,
        Coordinates::CropAndResize { start, end } => {
            let (start, end) = (f64::from(start), f64::from(end));
            let along = match exact == 1.0 {
                true => (end - start) * (size - 1.0) / 2.0,
                false => x * (end - start) * (size - 1.0) / (exact - 1.0),
            };
            along + start * (size - 1.0)
        }
    }
}

fn nearest(rounding: Rounding, position: f64, size: usize) -> usize {
    let rounded = match rounding {
        Rounding::PreferFloor => (position - 0.5).ceil(),
        Rounding::PreferCeil => (position + 0.5).floor(),
        Rounding::Floor => position.floor(),
        Rounding::Ceil => position.ceil(),
    };
    rounded.clamp(0.0, (size - 1) as f64) as usize
}

fn taps(resize: &Resize, size: usize) -> Taps {
    let mut taps = Taps::new(resize.extrapolation);
    for x in 0..resize.size {
        let position = position(resize, size, x);
        let outside = !(position >= 0.0 && position <= (size - 1) as f64);
        if outside && matches!(resize.coordinates, Coordinates::CropAndResize { .. }) {
            taps.push([]);
            continue;
        }
        let mut weights = weights(resize, position, size);
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut weights {
            *weight /= sum;
        }
        taps.push(joined(&weights, size));
    }
    taps
}

/// The old positions around `position`, some perhaps outside, and their weights.
fn weights(resize: &Resize, position: f64, size: usize) -> Vec<(i64, f64)> {
    let (reach, antialias, weight): (f64, bool, &dyn Fn(f64) -> f64) = match resize.interpolation {
        Interpolation::Nearest(rounding) => return vec![(nearest(rounding, position, size) as i64, 1.0)],
        Interpolation::Linear { antialias } => (1.0, antialias, &|x: f64| (1.0 - x.abs()).max(0.0)),
        Interpolation::Cubic { a, antialias } => (2.0, antialias, &move |x: f64| cubic(f64::from(a), x.abs())),
    };
    let stretch = if antialias { resize.scale.min(1.0) } else { 1.0 };
    // no position further than all of the axis has a weight that counts for another one than the border's
    let reach = (reach / stretch).min(2.0 * size as f64 + 4.0);
    let first = (position - reach).floor() as i64;
    let last = (position + reach).ceil() as i64;
    let inside = |at: &i64| !resize.exclude_outside || (0..size as i64).contains(at);
    let weighted = |at: i64| (at, weight((at as f64 - position) * stretch));
    (first..=last).filter(inside).map(weighted).filter(|(_, weight)| *weight != 0.0).collect()
}

/// Keys' cubic convolution.
fn cubic(a: f64, x: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

/// The weights of positions inside: those outside are the border's.
fn joined(weights: &[(i64, f64)], size: usize) -> Vec<(usize, f32)> {
    let mut joined: Vec<(usize, f64)> = Vec::with_capacity(weights.len());
    for &(at, weight) in weights {
        let at = at.clamp(0, size as i64 - 1) as usize;
        match joined.last_mut().filter(|(last, _)| *last == at) {
            Some((_, sum)) => *sum += weight,
            None => joined.push((at, weight)),
        }
    }
    joined.into_iter().map(|(at, weight)| (at, weight as f32)).collect()
}
