//! The type and dimensions of an operation's output, and the proof that it keeps the rows of a batch apart: `Dim::Batch` goes in
//! at dimension 0 and comes out there, or the operation is refused. One file an operator family. The reader and every pass
//! that adds a node ask here, so a graph holds no node whose shapes do not fit.

mod broadcast;
mod elementwise;
mod indexing;
mod matmul;
mod movement;
mod recurrent;
mod reduction;
mod sampling;
mod window;

use insula_core::DType;
use smallvec::SmallVec;

use crate::error::{LoadError, LoadErrorKind, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::op::{ArgExtreme, Cumulative, Op, Reduce, Reduction};

pub use broadcast::broadcast;
pub use window::{MAX_WINDOW_ATTRIBUTE, pool_windows_hold_pixels, window_output};

/// Dimensions of a value.
pub type Dims = SmallVec<[Dim; 4]>;

/// What `op` makes of `inputs`. The error says what does not fit, without naming the node.
pub fn infer(op: &Op, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let moves = matches!(op, Op::Move(_) | Op::Transpose { .. } | Op::Cast { .. });
    if let Some(index) = inputs.iter().position(|input| !moves && input.dims.contains(&Dim::Fixed(0))) {
        let shape = shown(&inputs[index].dims);
        return Err(LoadError::unsupported(format!(
            "input {index} has no elements: {shape}; {} takes some",
            op.name()
        )));
    }
    let moved = match op {
        Op::Move(_) | Op::Sample(_) if inputs.is_empty() => {
            return Err(LoadError::malformed(format!("it has no inputs, {} takes some", op.name())));
        }
        Op::Move(movement) => Some(movement::infer(movement, inputs)?),
        Op::Sample(sampling) => Some(sampling::infer(sampling, inputs)?),
        _ => None,
    };
    if let Some(moved) = moved {
        check_batch(&moved.dims)?;
        return Ok(moved);
    }
    check_count(op, inputs.len())?;
    check_types(op, inputs)?;
    let first = inputs[0];
    let dims = match op {
        Op::Conv(conv) => window::conv(conv, &first.dims, &inputs[1].dims)?,
        Op::MaxPool(pool) => window::pool(pool, &first.dims)?,
        Op::AveragePool(pool) => window::pool(&pool.window, &first.dims)?,
        Op::LpPool(pool) => window::pool(&pool.window, &first.dims)?,
        Op::MaxPositions(op) => window::max_positions(op, &first.dims)?,
        Op::ConvTranspose(conv) => return with_batch_checked(window::conv_transpose(conv, inputs)?),
        Op::DeformConv(conv) => return with_batch_checked(window::deform_conv(conv, inputs)?),
        Op::Recurrent(layer) => return with_batch_checked(recurrent::recurrent(layer, inputs)?),
        Op::MatMul => matmul::matmul(&first.dims, &inputs[1].dims)?,
        Op::Binary(_) => broadcast(&first.dims, &inputs[1].dims)?,
        Op::Activation(_) | Op::Cast { .. } | Op::Move(_) | Op::Sample(_) => first.dims.clone(),
        Op::Elementwise(op) => {
            let tensor = elementwise::infer(*op, inputs)?;
            check_batch(&tensor.dims)?;
            return Ok(tensor);
        }
        Op::Softmax { axis, .. } => reduction::along(&first.dims, *axis)?,
        Op::Normalize { .. } => reduction::normalized(inputs)?,
        Op::Reduce(Reduce { axes, keep_dims, .. }) => reduction::reduced(&first.dims, axes, *keep_dims)?,
        Op::ArgExtreme(ArgExtreme { axis, keep_dims, .. }) => reduction::reduced(&first.dims, &[*axis], *keep_dims)?,
        Op::Cumulative(Cumulative { axis, .. }) => reduction::along(&first.dims, *axis)?,
        Op::Transpose { permutation } => permuted(&first.dims, permutation)?,
    };
    check_batch(&dims)?;
    let dtype = match op {
        Op::Cast { to } => *to,
        Op::ArgExtreme(_) | Op::MaxPositions(_) => DType::Int64,
        _ => first.dtype,
    };
    Ok(TensorType { dtype, dims })
}

fn with_batch_checked(tensor: TensorType) -> LoadResult<TensorType> {
    check_batch(&tensor.dims)?;
    Ok(tensor)
}

/// `dims` as messages show them, the batch as `batch`.
pub fn shown(dims: &[Dim]) -> String {
    let text: Vec<String> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Fixed(size) => size.to_string(),
            Dim::Batch => "batch".to_string(),
        })
        .collect();
    format!("[{}]", text.join(","))
}

/// An error that the batch's rows would meet.
pub(crate) fn rows_meet(why: &str) -> LoadError {
    LoadError::new(
        LoadErrorKind::RowsMeet,
        format!("the rows of a batch must stay independent, with the batch as dimension 0, but {why}"),
    )
}

/// Whether `dtype` is one that products, windows and what is fused to them are computed in.
pub fn is_arithmetic(dtype: DType) -> bool {
    matches!(dtype, DType::Fp32 | DType::Fp16)
}

/// Whether `dtype` is a float of any width.
pub fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::Fp32 | DType::Fp16 | DType::Bf16 | DType::Fp64)
}

/// Whether `dtype` is an integer of any width.
pub fn is_integer(dtype: DType) -> bool {
    is_number(dtype) && !is_float(dtype)
}

/// Whether `dtype` is a number: neither BOOL nor BYTES.
pub fn is_number(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::Bytes)
}

fn check_count(op: &Op, found: usize) -> LoadResult<()> {
    let (least, most) = match op {
        Op::Conv(_) | Op::MatMul | Op::Binary(_) => (2, 2),
        Op::Elementwise(op) => (op.inputs(), op.inputs()),
        Op::Normalize { .. } => (1, 3),
        // count further inputs themselves
        Op::ConvTranspose(_) | Op::DeformConv(_) | Op::Recurrent(_) => (2, 8),
        _ => (1, 1),
    };
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(LoadError::malformed(format!("it has {found} inputs, {} takes {least} to {most}", op.name()))),
    }
}

fn check_types(op: &Op, inputs: &[&TensorType]) -> LoadResult<()> {
    let first = inputs[0].dtype;
    let (supported, types) = match op {
        // refuse types themselves
        Op::Elementwise(_) | Op::ConvTranspose(_) | Op::DeformConv(_) | Op::Recurrent(_) => return Ok(()),
        Op::Cast { to } => (first != DType::Bytes && *to != DType::Bytes, "all types but BYTES"),
        Op::Transpose { .. } => (first != DType::Bytes, "all types but BYTES"),
        Op::Binary(_) | Op::ArgExtreme(_) | Op::Cumulative(_) => (is_number(first), "numbers"),
        Op::Reduce(Reduce { reduction: Reduction::Max | Reduction::Min, .. }) => {
            (first != DType::Bytes, "numbers and BOOL")
        }
        Op::Reduce(_) => (is_number(first), "numbers"),
        Op::Activation(_) => (is_float(first), "floats"),
        Op::MatMul => (is_arithmetic(first) || is_exact(op, first), "FP16, FP32, FP64 and integers of 32 and 64 bits"),
        Op::Conv(_) => (is_arithmetic(first) || is_exact(op, first), "FP16, FP32, FP64 and INT32"),
        _ => (is_arithmetic(first), "FP32 and FP16"),
    };
    if !supported {
        let name = op.name();
        return Err(LoadError::unsupported(format!("input 0 has type {first}; {name} is supported on {types}")));
    }
    check_same_types(inputs, 0)
}

/// Fails when an input after `first` has another type than that.
fn check_same_types(inputs: &[&TensorType], first: usize) -> LoadResult<()> {
    let dtype = inputs[first].dtype;
    match inputs.iter().skip(first).position(|input| input.dtype != dtype) {
        None => Ok(()),
        Some(index) => Err(LoadError::malformed(format!(
            "input {} has type {}, input {first} has {dtype}: they must be the same",
            index + first,
            inputs[index + first].dtype
        ))),
    }
}

/// Whether `op` is a product that devices compute as plainly as `dtype`, which is not FP32 or FP16, does it.
fn is_exact(op: &Op, dtype: DType) -> bool {
    match op {
        Op::MatMul => {
            matches!(dtype, DType::Int32 | DType::Int64 | DType::Uint32 | DType::Uint64 | DType::Fp64)
        }
        Op::Conv(_) => matches!(dtype, DType::Int32 | DType::Fp64),
        _ => false,
    }
}

/// The batch may be dimension 0 alone, and the fixed dimensions must be countable.
pub fn check_batch(dims: &[Dim]) -> LoadResult<()> {
    if let Some(axis) = dims.iter().skip(1).position(|dim| *dim == Dim::Batch) {
        return Err(rows_meet(&format!("it would become dimension {}", axis + 1)));
    }
    let fixed = |dim: &Dim| match dim {
        Dim::Fixed(size) => *size,
        Dim::Batch => 1,
    };
    let fixed: SmallVec<[usize; 4]> = dims.iter().map(fixed).collect();
    insula_core::Shape::new(&fixed)?;
    Ok(())
}

/// The dimensions of a transposition. Fails when `permutation` is none, or moves the batch.
pub fn permuted(dims: &[Dim], permutation: &[usize]) -> LoadResult<Dims> {
    let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, dims.len());
    for &axis in permutation {
        if let Some(seen) = seen.get_mut(axis) {
            *seen = true;
        }
    }
    if permutation.len() != dims.len() || seen.contains(&false) {
        return Err(LoadError::malformed(format!(
            "{permutation:?} is not a permutation of the axes of {}",
            shown(dims)
        )));
    }
    if dims.first() == Some(&Dim::Batch) && permutation[0] != 0 {
        return Err(rows_meet(&format!("the permutation {permutation:?} moves it")));
    }
    Ok(permutation.iter().map(|&axis| dims[axis]).collect())
}

#[cfg(test)]
mod tests;
