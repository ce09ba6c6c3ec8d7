//! Resize and Upsample: the sizes and scales of each opset become one operation for each axis that changes.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::sampling::{Coordinates, Interpolation, Resize, Rounding, Sampling};
use crate::op::{Axes, Op};
use crate::operators::node_import::resolve_axis;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, rows_meet};

/// The new size of an axis, and new over old as the model states it.
#[derive(Debug, Clone, Copy)]
struct Target {
    axis: usize,
    size: usize,
    scale: f64,
}

/// Scales are an attribute before opset 9.
pub(super) fn upsample(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let scales = match node.opset < 9 {
        true => node.attributes.floats("scales")?.map(<[f32]>::to_vec),
        false => floats(node, 1)?,
    };
    let scales = scales.ok_or_else(|| LoadError::malformed("its scales are missing"))?;
    let axes: Axes = (0..dims.len()).collect();
    let targets = scaled(&dims, &axes, &scales)?;
    let interpolation = old_mode(node)?;
    let template = Resize { interpolation, ..template(Coordinates::Asymmetric) };
    resized(node, input, targets, &template, &[]).map(Item::Value)
}

/// Until opset 10 there are two modes, and new positions are old ones times the scale.
fn old_mode(node: &NodeImport<'_>) -> LoadResult<Interpolation> {
    match node.attributes.text("mode")?.unwrap_or("nearest") {
        "nearest" => Ok(Interpolation::Nearest(Rounding::Floor)),
        "linear" | "bilinear" => Ok(Interpolation::Linear { antialias: false }),
        _ => Err(LoadError::malformed("attribute `mode` must be nearest or linear")),
    }
}

fn template(coordinates: Coordinates) -> Resize {
    Resize {
        axis: 0,
        size: 0,
        scale: 1.0,
        coordinates,
        interpolation: Interpolation::Nearest(Rounding::PreferFloor),
        exclude_outside: false,
        extrapolation: 0.0,
    }
}

pub(super) fn resize(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    if node.opset < 11 {
        return upsample(node);
    }
    let input = node.value(0)?;
    let dims = node.dims(input);
    let axes: Axes = match (node.opset >= 18).then(|| node.attributes.ints("axes")).transpose()?.flatten() {
        Some(axes) => axes.iter().map(|axis| resolve_axis(*axis, dims.len())).collect::<LoadResult<_>>()?,
        None => (0..dims.len()).collect(),
    };
    let interpolation = interpolation(node)?;
    let (coordinates, crop) = coordinates(node)?;
    let exclude_outside = node.attributes.flag("exclude_outside", false)?;
    let extrapolation = node.attributes.float("extrapolation_value")?.unwrap_or(0.0);
    let regions = match crop {
        true => regions(node, axes.len())?,
        false => Vec::new(),
    };
    let scales = floats(node, 2)?.filter(|scales| !scales.is_empty());
    let sizes = sizes(node, &dims, &axes)?;
    let targets = match (scales, sizes) {
        (Some(scales), None) => scaled(&dims, &axes, &scales)?,
        (None, Some(targets)) => targets,
        _ => return Err(LoadError::malformed("it needs either scales or sizes")),
    };
    let template = Resize { interpolation, exclude_outside, extrapolation, ..template(coordinates) };
    let regions: Vec<Option<Coordinates>> = (0..dims.len())
        .map(|axis| axes.iter().position(|other| *other == axis).and_then(|index| regions.get(index).copied()))
        .collect();
    resized(node, input, targets, &template, &regions).map(Item::Value)
}

fn interpolation(node: &NodeImport<'_>) -> LoadResult<Interpolation> {
    let rounding = match node.attributes.text("nearest_mode")?.unwrap_or("round_prefer_floor") {
        "round_prefer_floor" => Rounding::PreferFloor,
        "round_prefer_ceil" => Rounding::PreferCeil,
        "floor" => Rounding::Floor,
        "ceil" => Rounding::Ceil,
        _ => {
            return Err(LoadError::malformed(
                "attribute `nearest_mode` must be round_prefer_floor, round_prefer_ceil, floor or ceil",
            ));
        }
    };
    let a = node.attributes.float("cubic_coeff_a")?.unwrap_or(-0.75);
    let antialias = node.opset >= 18 && node.attributes.flag("antialias", false)?;
    match node.attributes.text("mode")?.unwrap_or("nearest") {
        "nearest" => Ok(Interpolation::Nearest(rounding)),
        "linear" => Ok(Interpolation::Linear { antialias }),
        "cubic" => Ok(Interpolation::Cubic { a, antialias }),
        _ => Err(LoadError::malformed("attribute `mode` must be nearest, linear or cubic")),
    }
}

/// The coordinates, and whether regions are cropped.
fn coordinates(node: &NodeImport<'_>) -> LoadResult<(Coordinates, bool)> {
    Ok(match node.attributes.text("coordinate_transformation_mode")?.unwrap_or("half_pixel") {
        "half_pixel" => (Coordinates::HalfPixel, false),
        "half_pixel_symmetric" => (Coordinates::HalfPixelSymmetric, false),
        "pytorch_half_pixel" => (Coordinates::PytorchHalfPixel, false),
        "align_corners" => (Coordinates::AlignCorners, false),
        "asymmetric" => (Coordinates::Asymmetric, false),
        "tf_crop_and_resize" => (Coordinates::CropAndResize { start: 0.0, end: 1.0 }, true),
        _ => {
            return Err(LoadError::unsupported(
                "attribute `coordinate_transformation_mode` must be half_pixel, half_pixel_symmetric, \
                 pytorch_half_pixel, align_corners, asymmetric or tf_crop_and_resize",
            ));
        }
    })
}

/// Which part of each axis is shown.
fn regions(node: &mut NodeImport<'_>, axes: usize) -> LoadResult<Vec<Coordinates>> {
    let regions = floats(node, 1)?.unwrap_or_default();
    if regions.len() != 2 * axes {
        return Err(LoadError::malformed(format!("its roi has {} numbers, expected {}", regions.len(), 2 * axes)));
    }
    let (starts, ends) = regions.split_at(axes);
    Ok(starts.iter().zip(ends).map(|(&start, &end)| Coordinates::CropAndResize { start, end }).collect())
}

/// Input number `index` as floats, if it is there.
fn floats(node: &mut NodeImport<'_>, index: usize) -> LoadResult<Option<Vec<f32>>> {
    match node.known(index)? {
        Some(constant) if constant.dtype() == DType::Fp64 => {
            Ok(Some(constant.typed::<f64>()?.iter().map(|value| *value as f32).collect()))
        }
        Some(constant) => Ok(Some(constant.to_f32()?.into_owned())),
        None => Ok(None),
    }
}

/// Targets of scales: sizes are rounded down.
fn scaled(dims: &Dims, axes: &[usize], scales: &[f32]) -> LoadResult<Vec<Target>> {
    if scales.len() != axes.len() {
        return Err(LoadError::malformed(format!("{} scales for {} axes", scales.len(), axes.len())));
    }
    let mut targets = Vec::new();
    for (&axis, &scale) in axes.iter().zip(scales) {
        match dims[axis] {
            _ if scale == 1.0 => {}
            Dim::Batch => return Err(rows_meet("they would be resized")),
            Dim::Fixed(size) => {
                let scale = f64::from(scale);
                targets.push(Target { axis, size: (size as f64 * scale).floor() as usize, scale });
            }
        }
    }
    Ok(targets)
}

/// Targets of sizes, if they are there, which may have to keep the ratio of the axes.
fn sizes(node: &NodeImport<'_>, dims: &Dims, axes: &[usize]) -> LoadResult<Option<Vec<Target>>> {
    let policy = match node.opset >= 18 {
        true => node.attributes.text("keep_aspect_ratio_policy")?.unwrap_or("stretch"),
        false => "stretch",
    };
    let Some(sizes) = node.sizes(3)?.filter(|sizes| !sizes.sizes.is_empty()) else { return Ok(None) };
    if sizes.sizes.len() != axes.len() {
        return Err(LoadError::malformed(format!("{} sizes for {} axes", sizes.sizes.len(), axes.len())));
    }
    let mut targets = Vec::new();
    for (&axis, size) in axes.iter().zip(&sizes.sizes) {
        let (old, new) = match (dims[axis], size) {
            (Dim::Batch, super::node_import::Size::Batch) => continue,
            (Dim::Fixed(old), super::node_import::Size::Number(new)) => (old, *new),
            _ => return Err(rows_meet("they would be resized")),
        };
        let new = usize::try_from(new).map_err(|_| LoadError::malformed(format!("its sizes hold {new}")))?;
        targets.push(Target { axis, size: new, scale: new as f64 / old as f64 });
    }
    let scales = targets.iter().map(|target| target.scale);
    let scale = match policy {
        "stretch" => return Ok(Some(targets)),
        "not_larger" => scales.fold(f64::INFINITY, f64::min),
        "not_smaller" => scales.fold(0.0, f64::max),
        _ => {
            return Err(LoadError::malformed(
                "attribute `keep_aspect_ratio_policy` must be stretch, not_larger or not_smaller",
            ));
        }
    };
    for target in &mut targets {
        let Dim::Fixed(old) = dims[target.axis] else { continue };
        *target = Target { axis: target.axis, size: (scale * old as f64 + 0.5).floor() as usize, scale };
    }
    Ok(Some(targets))
}

/// One axis after the other, those that shrink first. Other types than FP32 are interpolated in it, and rounded once.
fn resized(
    node: &mut NodeImport<'_>,
    input: ValueId,
    mut targets: Vec<Target>,
    template: &Resize,
    regions: &[Option<Coordinates>],
) -> LoadResult<ValueId> {
    let dims = node.dims(input);
    let region = |axis: usize| regions.get(axis).copied().flatten();
    let whole =
        |axis: usize| region(axis).is_none_or(|region| region == Coordinates::CropAndResize { start: 0.0, end: 1.0 });
    targets.retain(|target| Dim::Fixed(target.size) != dims[target.axis] || !whole(target.axis));
    targets.sort_by(|a, b| a.scale.total_cmp(&b.scale).then(b.axis.cmp(&a.axis)));
    if let Some(target) = targets.iter().find(|target| target.size == 0) {
        return Err(LoadError::malformed(format!("axis {} would be resized to nothing", target.axis)));
    }
    let dtype = node.tensor(input).dtype;
    let any_type = matches!(template.interpolation, Interpolation::Nearest(_)) && regions.iter().all(Option::is_none);
    let widened = !any_type && dtype != DType::Fp32 && !targets.is_empty();
    if widened && matches!(dtype, DType::Fp64) {
        return Err(LoadError::unsupported("interpolation of FP64; FP32, FP16 and integers are supported"));
    }
    let mut value = if widened { node.compute(Op::Cast { to: DType::Fp32 }, &[input])? } else { input };
    for Target { axis, size, scale } in targets {
        let coordinates = region(axis).unwrap_or(template.coordinates);
        let resize = Resize { axis, size, scale, coordinates, ..*template };
        value = node.compute(Op::Sample(Sampling::Resize(resize)), &[value])?;
    }
    if widened { node.compute(Op::Cast { to: dtype }, &[value]) } else { Ok(value) }
}
