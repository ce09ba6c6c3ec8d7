//! Shapes of operations that move elements: slices, joints, paddings, broadcasts and triangles. Any element type.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::op::movement::{AxisSlice, Found, Movement, Pad, PadMode, UniqueOutput};
use crate::shape_inference::{Dims, indexing, rows_meet, shown};

/// What `movement` makes of `inputs`, of which there is at least one.
pub(super) fn infer(movement: &Movement, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    check_count(movement, inputs.len())?;
    let first = inputs[0];
    let dims = match movement {
        Movement::Slice(slices) => sliced(&first.dims, slices)?,
        Movement::Concat { axis } => joined(inputs, *axis)?,
        Movement::Pad(pad) => padded(pad, inputs)?,
        Movement::Expand { dims } => expanded(&first.dims, dims)?,
        Movement::Gather { .. }
        | Movement::GatherElements { .. }
        | Movement::GatherNd { .. }
        | Movement::ScatterElements { .. }
        | Movement::ScatterNd { .. }
        | Movement::CacheUpdate { .. }
        | Movement::OneHot { .. }
        | Movement::ReverseSequence { .. } => return indexing::infer(movement, inputs),
        Movement::Top(top) => {
            let mut dims = first.dims.clone();
            match dims.get_mut(top.axis) {
                Some(Dim::Batch) => return Err(rows_meet("the largest elements would be found along it")),
                Some(Dim::Fixed(size)) if top.count <= *size => *size = top.count,
                _ => return Err(not_there(top.axis, &first.dims)),
            }
            let dtype = if top.positions { DType::Int64 } else { first.dtype };
            return Ok(TensorType { dtype, dims });
        }
        Movement::Triangle { .. } => match &first.dims[..] {
            [Dim::Batch, _] => return Err(rows_meet("which elements of a row are kept would depend on its number")),
            [_, _, ..] => first.dims.clone(),
            _ => return Err(LoadError::malformed(format!("{} holds no matrices", shown(&first.dims)))),
        },
        Movement::NonZero(found) => {
            return Ok(TensorType { dtype: DType::Int64, dims: found_dims(*found, first.dims.len(), true) });
        }
        Movement::Unique(unique) => {
            let count = match (unique.output, unique.axis) {
                (UniqueOutput::Count, _) => {
                    return Ok(TensorType { dtype: DType::Int64, dims: Dims::new() });
                }
                (UniqueOutput::First { count } | UniqueOutput::Counts { count }, _) => Dim::Fixed(count),
                (UniqueOutput::Inverse, Some(axis)) => {
                    *first.dims.get(axis).ok_or_else(|| not_there(axis, &first.dims))?
                }
                (UniqueOutput::Inverse, None) => Dim::Fixed(first.shape(1)?.elements()),
            };
            return Ok(TensorType { dtype: DType::Int64, dims: Dims::from_iter([count]) });
        }
        Movement::NonMaxSuppression(suppression) => {
            check_boxes(inputs)?;
            return Ok(TensorType { dtype: DType::Int64, dims: found_dims(suppression.found, 3, false) });
        }
    };
    Ok(TensorType { dtype: first.dtype, dims })
}

fn check_count(movement: &Movement, found: usize) -> LoadResult<()> {
    let expected = match movement {
        Movement::Concat { .. } => 1..=usize::MAX,
        Movement::CacheUpdate { .. } => 2..=3,
        Movement::Pad(Pad { mode: PadMode::Constant, .. })
        | Movement::Gather { .. }
        | Movement::GatherElements { .. }
        | Movement::GatherNd { .. }
        | Movement::OneHot { .. }
        | Movement::Triangle { .. }
        | Movement::ReverseSequence { .. }
        | Movement::NonMaxSuppression(_) => 2..=2,
        Movement::ScatterElements { .. } | Movement::ScatterNd { .. } => 3..=3,
        _ => 1..=1,
    };
    match expected.contains(&found) {
        true => Ok(()),
        false => Err(LoadError::malformed(format!(
            "it has {found} inputs, {} takes {} at least",
            movement.name(),
            expected.start()
        ))),
    }
}

pub(super) fn not_there(axis: usize, dims: &[Dim]) -> LoadError {
    LoadError::malformed(format!("axis {axis} of {} does not exist or is too small", shown(dims)))
}

fn found_dims(found: Found, width: usize, width_first: bool) -> Dims {
    match found {
        Found::Count => Dims::new(),
        Found::All { count } if width_first => Dims::from_iter([Dim::Fixed(width), Dim::Fixed(count)]),
        Found::All { count } => Dims::from_iter([Dim::Fixed(count), Dim::Fixed(width)]),
    }
}

fn check_boxes(inputs: &[&TensorType]) -> LoadResult<()> {
    let (boxes, scores) = (inputs[0], inputs[1]);
    let fits = match (&boxes.dims[..], &scores.dims[..]) {
        ([images, count, Dim::Fixed(4)], [scored, _, scores]) => images == scored && count == scores,
        _ => false,
    };
    match fits && boxes.dtype == DType::Fp32 && scores.dtype == DType::Fp32 {
        true => Ok(()),
        false => Err(LoadError::malformed(format!(
            "boxes {} {} and scores {} {}, expected FP32 [images, boxes, 4] and [images, classes, boxes]",
            boxes.dtype,
            shown(&boxes.dims),
            scores.dtype,
            shown(&scores.dims)
        ))),
    }
}

fn sliced(dims: &Dims, slices: &[AxisSlice]) -> LoadResult<Dims> {
    let mut dims = dims.clone();
    for slice in slices {
        let dim = match dims.get_mut(slice.axis) {
            Some(Dim::Batch) => return Err(rows_meet("a slice would pick some of them")),
            Some(Dim::Fixed(size)) => size,
            None => return Err(not_there(slice.axis, &dims)),
        };
        let last = i64::try_from(slice.size).ok().and_then(|size| (size - 1).checked_mul(slice.step));
        let last = last.and_then(|reach| usize::try_from(reach.checked_add(slice.start as i64)?).ok());
        let inside = slice.start < *dim && last.is_some_and(|last| last < *dim);
        if slice.size > 0 && !inside {
            return Err(not_there(slice.axis, &dims));
        }
        *dim = slice.size;
    }
    Ok(dims)
}

fn joined(inputs: &[&TensorType], axis: usize) -> LoadResult<Dims> {
    let mut dims = inputs[0].dims.clone();
    let mut sum = 0usize;
    for (index, input) in inputs.iter().enumerate() {
        if input.dtype != inputs[0].dtype {
            return Err(LoadError::malformed(format!(
                "input {index} has type {}, input 0 has {}: they must be the same",
                input.dtype, inputs[0].dtype
            )));
        }
        let same = |other: usize| other == axis || input.dims.get(other) == dims.get(other);
        if input.dims.len() != dims.len() || !(0..dims.len()).all(same) {
            let (first, other) = (shown(&dims), shown(&input.dims));
            let why = format!("{first} and {other} cannot be joined along axis {axis}");
            let batched = |dims: &Dims| dims.contains(&Dim::Batch);
            return Err(match batched(&dims) != batched(&input.dims) {
                true => rows_meet(&why),
                false => LoadError::malformed(why),
            });
        }
        match input.dims.get(axis) {
            Some(Dim::Fixed(size)) => {
                sum = sum.checked_add(*size).ok_or_else(|| LoadError::limit("the joined axis is too large"))?;
            }
            Some(Dim::Batch) if inputs.len() == 1 => return Ok(dims),
            Some(Dim::Batch) => return Err(rows_meet("they would be joined with others")),
            None => return Err(not_there(axis, &dims)),
        }
    }
    dims[axis] = Dim::Fixed(sum);
    Ok(dims)
}

fn padded(pad: &Pad, inputs: &[&TensorType]) -> LoadResult<Dims> {
    let mut dims = inputs[0].dims.clone();
    if pad.before.len() != dims.len() || pad.after.len() != dims.len() {
        return Err(LoadError::malformed(format!("padding for {} axes of {}", pad.before.len(), shown(&dims))));
    }
    if let Some(value) = inputs.get(1)
        && (value.dtype != inputs[0].dtype || value.dims.contains(&Dim::Batch) || value.shape(1)?.elements() != 1)
    {
        return Err(LoadError::malformed(format!(
            "the padding is {} {}, expected one {}",
            value.dtype,
            shown(&value.dims),
            inputs[0].dtype
        )));
    }
    for (axis, dim) in dims.iter_mut().enumerate() {
        let (before, after) = (pad.before[axis], pad.after[axis]);
        if before == 0 && after == 0 {
            continue;
        }
        let Dim::Fixed(size) = dim else { return Err(rows_meet("rows would be added to them")) };
        if pad.mode != PadMode::Constant && (*size == 0 || (*size == 1 && pad.mode == PadMode::Reflect)) {
            return Err(LoadError::malformed(format!("axis {axis} of size {size} has nothing to show in its padding")));
        }
        *size = size
            .checked_add(before)
            .and_then(|size| size.checked_add(after))
            .ok_or_else(|| LoadError::limit(format!("axis {axis} is padded by too much")))?;
    }
    Ok(dims)
}

fn expanded(from: &Dims, to: &Dims) -> LoadResult<Dims> {
    let refused = || LoadError::malformed(format!("{} cannot be broadcast to {}", shown(from), shown(to)));
    let missing = to.len().checked_sub(from.len()).ok_or_else(refused)?;
    let fits = |(from, to): (&Dim, &Dim)| from == to || *from == Dim::Fixed(1);
    match from.iter().zip(&to[missing..]).all(fits) {
        true => Ok(to.clone()),
        false if from.contains(&Dim::Batch) != to.contains(&Dim::Batch) => {
            Err(rows_meet(&format!("{} cannot be broadcast to {}", shown(from), shown(to))))
        }
        false => Err(refused()),
    }
}
