//! Shapes of operations that pick or replace parts of a tensor by indices, and the proof that each row's indices point into
//! the row itself or into what all rows share.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::op::movement::Movement;
use crate::shape_inference::movement::not_there;
use crate::shape_inference::{Dims, rows_meet, shown};

/// What `movement`, one with indices, makes of `inputs`.
pub(super) fn infer(movement: &Movement, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let first = inputs[0];
    let dims = match movement {
        Movement::Gather { axis } => gathered(inputs, *axis)?,
        Movement::GatherElements { axis } => {
            check_indices(inputs[1])?;
            elements_along(&first.dims, &inputs[1].dims, *axis)?
        }
        Movement::GatherNd { batch_dims } => gathered_nd(inputs, *batch_dims)?,
        Movement::ScatterElements { axis, .. } => {
            check_updates(inputs)?;
            elements_along(&first.dims, &inputs[1].dims, *axis)?;
            if batched(first) != batched(inputs[1]) || inputs[1].dims != inputs[2].dims {
                return Err(unfit("indices", inputs[1], "updates", inputs[2]));
            }
            first.dims.clone()
        }
        Movement::ScatterNd { .. } => scattered_nd(inputs)?,
        Movement::CacheUpdate { axis, circular: _ } => updated(inputs, *axis)?,
        Movement::OneHot { axis, depth } => {
            let (indices, values) = (inputs[0], inputs[1]);
            if indices.dtype != DType::Int64 || values.dims[..] != [Dim::Fixed(2)] || *axis > indices.dims.len() {
                return Err(unfit("indices", indices, "values", values));
            }
            let mut dims = indices.dims.clone();
            dims.insert(*axis, Dim::Fixed(*depth));
            return Ok(TensorType { dtype: values.dtype, dims });
        }
        Movement::ReverseSequence { time_axis, batch_axis } => {
            check_indices(inputs[1])?;
            let fits = first.dims.len() >= 2 && time_axis + batch_axis == 1;
            if !fits || inputs[1].dims[..] != first.dims[*batch_axis..=*batch_axis] {
                return Err(unfit("sequences", first, "lengths", inputs[1]));
            }
            if first.dims[*time_axis] == Dim::Batch {
                return Err(rows_meet("they would be turned around"));
            }
            first.dims.clone()
        }
        _ => return Err(LoadError::internal("a shape was not found", format!("{movement:?} has no indices"))),
    };
    Ok(TensorType { dtype: first.dtype, dims })
}

fn batched(tensor: &TensorType) -> bool {
    tensor.dims.contains(&Dim::Batch)
}

fn unfit(first: &str, a: &TensorType, second: &str, b: &TensorType) -> LoadError {
    let why = format!(
        "{first} {} {} and {second} {} {} do not fit together",
        a.dtype,
        shown(&a.dims),
        b.dtype,
        shown(&b.dims)
    );
    if batched(a) != batched(b) { rows_meet(&why) } else { LoadError::malformed(why) }
}

fn check_indices(indices: &TensorType) -> LoadResult<()> {
    match indices.dtype {
        DType::Int32 | DType::Int64 => Ok(()),
        other => Err(LoadError::malformed(format!("indices of type {other}, expected INT32 or INT64"))),
    }
}

fn check_updates(inputs: &[&TensorType]) -> LoadResult<()> {
    check_indices(inputs[1])?;
    match inputs[0].dtype == inputs[2].dtype {
        true => Ok(()),
        false => Err(LoadError::malformed(format!("updates of type {} for {}", inputs[2].dtype, inputs[0].dtype))),
    }
}

fn gathered(inputs: &[&TensorType], axis: usize) -> LoadResult<Dims> {
    let (data, indices) = (&inputs[0].dims, &inputs[1].dims);
    check_indices(inputs[1])?;
    match data.get(axis) {
        None => return Err(not_there(axis, data)),
        Some(Dim::Batch) => return Err(rows_meet("indices would pick some of them")),
        Some(Dim::Fixed(_)) if batched(inputs[0]) && batched(inputs[1]) => {
            return Err(rows_meet("each row's indices would pick from all rows"));
        }
        Some(Dim::Fixed(_)) => {}
    }
    Ok(data[..axis].iter().chain(indices).chain(&data[axis + 1..]).copied().collect())
}

/// The shape of indices that fit `data` along `axis`.
fn elements_along(data: &Dims, indices: &Dims, axis: usize) -> LoadResult<Dims> {
    let fits = |other: usize| match (indices[other], data[other]) {
        (Dim::Batch, Dim::Batch) => other != axis,
        (Dim::Fixed(indices), Dim::Fixed(data)) => other == axis || indices <= data,
        (Dim::Batch, Dim::Fixed(_)) => other == axis,
        (Dim::Fixed(_), Dim::Batch) => false,
    };
    if indices.len() != data.len() || axis >= data.len() {
        return Err(LoadError::malformed(format!(
            "indices {} along axis {axis} of {} do not fit",
            shown(indices),
            shown(data)
        )));
    }
    match (0..data.len()).all(fits) {
        true => Ok(indices.clone()),
        false if data.contains(&Dim::Batch) || indices.contains(&Dim::Batch) => {
            Err(rows_meet(&format!("indices {} would pick along axis {axis} of {}", shown(indices), shown(data))))
        }
        false => Err(LoadError::malformed(format!("indices {} do not fit into {}", shown(indices), shown(data)))),
    }
}

/// How many dimensions of the data index vectors point into; the data's dimensions behind them are a slice.
fn depth(indices: &Dims, available: usize) -> LoadResult<usize> {
    match indices.last() {
        Some(Dim::Fixed(depth)) if (1..=available).contains(depth) => Ok(*depth),
        _ => Err(LoadError::malformed(format!(
            "index vectors {} for {available} dimensions, expected 1 to {available} entries",
            shown(indices)
        ))),
    }
}

fn gathered_nd(inputs: &[&TensorType], batch_dims: usize) -> LoadResult<Dims> {
    let (data, indices) = (&inputs[0].dims, &inputs[1].dims);
    check_indices(inputs[1])?;
    if batch_dims >= data.len().min(indices.len()) || data[..batch_dims] != indices[..batch_dims] {
        return Err(unfit("data", inputs[0], "indices", inputs[1]));
    }
    if batched(inputs[0]) && batch_dims == 0 {
        return Err(rows_meet("indices would pick some of them"));
    }
    let depth = depth(indices, data.len() - batch_dims)?;
    Ok(indices[..indices.len() - 1].iter().chain(&data[batch_dims + depth..]).copied().collect())
}

fn scattered_nd(inputs: &[&TensorType]) -> LoadResult<Dims> {
    let (data, indices, updates) = (&inputs[0].dims, &inputs[1].dims, &inputs[2].dims);
    check_updates(inputs)?;
    if inputs.iter().any(|input| batched(input)) {
        return Err(rows_meet("updates would be written across them"));
    }
    let depth = depth(indices, data.len())?;
    let expected: Dims = indices[..indices.len() - 1].iter().chain(&data[depth..]).copied().collect();
    match *updates == expected {
        true => Ok(data.clone()),
        false => Err(LoadError::malformed(format!("updates {}, expected {}", shown(updates), shown(&expected)))),
    }
}

fn updated(inputs: &[&TensorType], axis: usize) -> LoadResult<Dims> {
    let (cache, update) = (inputs[0], inputs[1]);
    let same = |other: usize| other == axis || cache.dims[other] == update.dims[other];
    let fits = cache.dims.len() == update.dims.len()
        && (1..cache.dims.len()).contains(&axis)
        && (0..cache.dims.len()).all(same)
        && cache.dtype == update.dtype;
    let shorter = |axis: usize| match (update.dims[axis], cache.dims[axis]) {
        (Dim::Fixed(update), Dim::Fixed(cache)) => update <= cache,
        _ => false,
    };
    if !fits || !shorter(axis) {
        return Err(unfit("caches", cache, "updates", update));
    }
    if let Some(starts) = inputs.get(2) {
        check_indices(starts)?;
        if starts.dims[..] != cache.dims[..1] {
            return Err(unfit("caches", cache, "positions", starts));
        }
    }
    Ok(cache.dims.clone())
}
