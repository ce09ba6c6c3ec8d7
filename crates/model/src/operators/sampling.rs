//! Operators that read images between their pixels or put them together: GridSample, AffineGrid, RoiAlign, Col2Im, MaxUnpool.
//! Their images become channels last.

use insula_core::Shape;
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::movement::{Movement, PadMode};
use crate::op::sampling::{Border, Col2Im, GridInterpolation, GridSample, RoiAlign, Sampling};
use crate::op::{Axes, Op};
use crate::operators::slicing::{fixed, padded, zero};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, rows_meet, shown};

pub(super) fn grid_sample(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, grid) = (node.value(0)?, node.value(1)?);
    let interpolation = match node.attributes.text("mode")?.unwrap_or("linear") {
        "nearest" => GridInterpolation::Nearest,
        "linear" | "bilinear" => GridInterpolation::Linear,
        "cubic" | "bicubic" => GridInterpolation::Cubic,
        _ => return Err(LoadError::malformed("attribute `mode` must be nearest, linear or cubic")),
    };
    let border = match node.attributes.text("padding_mode")?.unwrap_or("zeros") {
        "zeros" => Border::Zeros,
        "border" => Border::Edge,
        "reflection" => Border::Reflection,
        _ => return Err(LoadError::malformed("attribute `padding_mode` must be zeros, border or reflection")),
    };
    let align_corners = node.attributes.flag("align_corners", false)?;
    if node.rank(input) < 3 {
        return Err(LoadError::malformed(format!("{} are no images", shown(&node.dims(input)))));
    }
    let image = node.channels_last(input)?;
    let op = Op::Sample(Sampling::Grid(GridSample { interpolation, border, align_corners }));
    let sampled = node.compute(op, &[image, grid])?;
    node.channels_second(sampled).map(Item::Value)
}

/// Positions of an image's pixels times matrices: a product with a constant.
pub(super) fn affine_grid(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let theta = node.value(0)?;
    let align_corners = node.attributes.flag("align_corners", false)?;
    let sizes = node.sizes(1)?.ok_or_else(|| LoadError::malformed("input 1, the size, is left out"))?;
    let spatial = sizes.sizes.get(2..).unwrap_or_default().iter().map(|size| match size {
        super::node_import::Size::Number(size) => usize::try_from(*size).ok(),
        super::node_import::Size::Batch => None,
    });
    let spatial: Option<Axes> = spatial.collect();
    let Some(spatial) = spatial.filter(|spatial| matches!(spatial.len(), 2 | 3)) else {
        return Err(LoadError::malformed("its size is not that of images or volumes"));
    };
    let (axes, dims, dtype) = (spatial.len(), node.dims(theta), node.tensor(theta).dtype);
    if dims.len() != 3 || dims[1..] != [Dim::Fixed(axes), Dim::Fixed(axes + 1)] {
        return Err(LoadError::malformed(format!("matrices {} for {axes} axes", shown(&dims))));
    }
    let points = points(&spatial, align_corners);
    let shape = Shape::new(&[1, points.len() / (axes + 1), axes + 1])?;
    if !node.graph.charge_derived(4 * points.len()) {
        return Err(LoadError::limit("the grid is too large"));
    }
    let points = node.graph.add_constant(node.name.clone(), Constant::of_f32(dtype, shape, &points)?)?;
    let columns = node.transpose(theta, &[0, 2, 1])?;
    let product = node.compute(Op::MatMul, &[points, columns])?;
    let grid: Dims = [dims[0]].into_iter().chain(spatial.into_iter().chain([axes]).map(Dim::Fixed)).collect();
    node.view(product, grid).map(Item::Value)
}

/// The pixels' positions in -1..1, the last axis first, each with a one behind it.
fn points(spatial: &[usize], align_corners: bool) -> Vec<f32> {
    let position = |at: usize, size: usize| match align_corners {
        true if size == 1 => -1.0,
        true => -1.0 + 2.0 * at as f64 / (size - 1) as f64,
        false => (2 * at + 1) as f64 / size as f64 - 1.0,
    };
    let count: usize = spatial.iter().product();
    let mut points = Vec::with_capacity(count * (spatial.len() + 1));
    for mut pixel in 0..count {
        for &size in spatial.iter().rev() {
            points.push(position(pixel % size, size) as f32);
            pixel /= size;
        }
        points.push(1.0);
    }
    points
}

pub(super) fn roi_align(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, regions, images) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let count = |name, default| {
        let value = node.attributes.int(name)?.unwrap_or(default);
        usize::try_from(value).map_err(|_| LoadError::malformed(format!("attribute `{name}` is {value}")))
    };
    let output = [count("output_height", 1)?, count("output_width", 1)?];
    let sampling_ratio = count("sampling_ratio", 0)?;
    let max = match node.attributes.text("mode")?.unwrap_or("avg") {
        "avg" => false,
        "max" => true,
        _ => return Err(LoadError::malformed("attribute `mode` must be avg or max")),
    };
    let half_pixel = match node.opset < 16 {
        true => false,
        false => match node.attributes.text("coordinate_transformation_mode")?.unwrap_or("half_pixel") {
            "half_pixel" => true,
            "output_half_pixel" => false,
            _ => return Err(LoadError::malformed("its coordinates must be half_pixel or output_half_pixel")),
        },
    };
    let spatial_scale = node.attributes.float("spatial_scale")?.unwrap_or(1.0);
    if node.rank(input) != 4 {
        return Err(LoadError::malformed(format!("{} are no images", shown(&node.dims(input)))));
    }
    let image = node.channels_last(input)?;
    let op = Op::Sample(Sampling::RoiAlign(RoiAlign { output, max, sampling_ratio, spatial_scale, half_pixel }));
    let pooled = node.compute(op, &[image, regions, images])?;
    node.channels_second(pooled).map(Item::Value)
}

pub(super) fn col2im(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let image = sizes(&node.integers(1)?.unwrap_or_default(), 1)?;
    let block = sizes(&node.integers(2)?.unwrap_or_default(), 1)?;
    let axes = image.len();
    let list = |name, default: i64, least, count: usize| match node.attributes.ints(name)? {
        Some(values) => sizes(values, least),
        None => Ok(Axes::from_elem(default as usize, count)),
    };
    let (strides, dilations) = (list("strides", 1, 1, axes)?, list("dilations", 1, 1, axes)?);
    let pads = list("pads", 0, 0, 2 * axes)?;
    if [block.len(), strides.len(), dilations.len(), pads.len() / 2].iter().any(|count| *count != axes) || axes == 0 {
        return Err(LoadError::malformed("its image, block, strides, dilations and pads have different lengths"));
    }
    let pads = (0..axes).map(|axis| [pads[axis], pads[axes + axis]]).collect();
    let op = Op::Sample(Sampling::Col2Im(Box::new(Col2Im { image, block, dilations, strides, pads })));
    node.compute(op, &[input]).map(Item::Value)
}

fn sizes(values: &[i64], least: i64) -> LoadResult<Axes> {
    let size = |value: &i64| match usize::try_from(*value) {
        Ok(size) if *value >= least => Ok(size),
        _ => Err(LoadError::malformed(format!("{value} where a size of at least {least} is expected"))),
    };
    values.iter().map(size).collect()
}

/// The indices count through the whole output: its elements are scattered into zeros.
pub(super) fn max_unpool(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (input, indices) = (node.value(0)?, node.value(1)?);
    let dims = node.dims(input);
    if dims.contains(&Dim::Batch) {
        return Err(rows_meet("its indices count through all of them"));
    }
    let kernel = sizes(node.attributes.ints("kernel_shape")?.unwrap_or_default(), 1)?;
    let axes = kernel.len();
    let strides = match node.attributes.ints("strides")? {
        Some(strides) => sizes(strides, 1)?,
        None => Axes::from_elem(1, axes),
    };
    let pads = match node.attributes.ints("pads")? {
        Some(pads) => sizes(pads, 0)?,
        None => Axes::from_elem(0, 2 * axes),
    };
    let shape = fixed(&dims)?;
    if shape.len() != axes + 2 || strides.len() != axes || pads.len() != 2 * axes {
        return Err(LoadError::malformed("its kernel, strides and pads do not fit its input"));
    }
    let mut inferred: SmallVec<[usize; 4]> = shape[..2].into();
    for axis in 0..axes {
        let reach = (shape[axis + 2] - 1).checked_mul(strides[axis]).and_then(|reach| reach.checked_add(kernel[axis]));
        let size = reach.and_then(|reach| reach.checked_sub(pads[axis] + pads[axes + axis]));
        inferred.push(size.ok_or_else(|| LoadError::malformed("its padding is larger than its output"))?);
    }
    let scattered = scattered(node, input, indices, &inferred)?;
    let Some(wanted) = node.integers(2)? else { return Ok(Item::Value(scattered)) };
    let wanted = sizes(&wanted, 1)?;
    if wanted.len() != inferred.len() {
        return Err(LoadError::malformed("its output shape has another number of dimensions"));
    }
    let pads: Vec<[i64; 2]> =
        wanted.iter().zip(&inferred).map(|(wanted, inferred)| [0, *wanted as i64 - *inferred as i64]).collect();
    let fill = zero(node, input)?;
    padded(node, scattered, &pads, PadMode::Constant, Some(fill)).map(Item::Value)
}

/// Zeros of `shape` with the elements of `input` at `indices` into the flat output.
fn scattered(node: &mut NodeImport<'_>, input: ValueId, indices: ValueId, shape: &[usize]) -> LoadResult<ValueId> {
    let flat = |count: usize| Dims::from_iter([Dim::Fixed(count)]);
    let elements = node.tensor(input).shape(1)?.elements();
    let total = Shape::new(shape)?.elements();
    let zero = zero(node, input)?;
    let zeros = node.compute(Op::Move(Movement::Expand { dims: flat(total) }), &[zero])?;
    let (updates, indices) = (node.view(input, flat(elements))?, node.view(indices, flat(elements))?);
    let op = Op::Move(Movement::ScatterElements { axis: 0, combine: None });
    let out = node.compute(op, &[zeros, indices, updates])?;
    node.view(out, shape.iter().map(|size| Dim::Fixed(*size)).collect())
}
