//! Operators that repeat what is there, or fill a shape: Expand, Tile, ConstantOfShape; and those whose result is known from
//! shapes and numbers alone: Range, EyeLike, Size.

use half::{bf16, f16};
use insula_core::{DType, Shape};
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::Op;
use crate::op::movement::Movement;
use crate::operators::node_import::{Size, Sizes};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, rows_meet, shown};
use crate::tensor_reader::element_type;

pub(super) fn expand(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let sizes = node.sizes(1)?.ok_or_else(|| LoadError::malformed("input 1, the shape, is left out"))?;
    let target = target(&sizes)?;
    let dims = broadcast_to(&node.dims(input), &target)?;
    expanded(node, input, dims).map(Item::Value)
}

/// The dimensions that `sizes` name.
fn target(sizes: &Sizes) -> LoadResult<Dims> {
    let dim = |size: &Size| match size {
        Size::Batch => Ok(Dim::Batch),
        Size::Number(number) => match usize::try_from(*number) {
            Ok(size) => Ok(Dim::Fixed(size)),
            Err(_) => Err(LoadError::malformed(format!("the shape holds {number}, expected sizes"))),
        },
    };
    sizes.sizes.iter().map(dim).collect()
}

/// Both broadcast, where ones of the target keep the input's.
fn broadcast_to(from: &Dims, target: &Dims) -> LoadResult<Dims> {
    let rank = from.len().max(target.len());
    let at = |dims: &Dims, axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(axis) => dims[axis],
        None => Dim::Fixed(1),
    };
    let joined = |axis: usize| match (at(from, axis), at(target, axis)) {
        (from, target) if from == target || target == Dim::Fixed(1) => Ok(from),
        (Dim::Fixed(1), target) => Ok(target),
        (Dim::Fixed(_), Dim::Fixed(_)) => {
            Err(LoadError::malformed(format!("{} cannot be broadcast to {}", shown(from), shown(target))))
        }
        _ => Err(rows_meet(&format!("{} cannot be broadcast to {}", shown(from), shown(target)))),
    };
    (0..rank).map(joined).collect()
}

/// `input` broadcast to `dims`: itself or a view where nothing is repeated.
fn expanded(node: &mut NodeImport<'_>, input: ValueId, dims: Dims) -> LoadResult<ValueId> {
    let from = node.dims(input);
    let missing = dims.len().saturating_sub(from.len());
    if from[..] == dims[missing..] && dims[..missing].iter().all(|dim| *dim == Dim::Fixed(1)) {
        return node.view(input, dims);
    }
    node.compute(Op::Move(Movement::Expand { dims }), &[input])
}

/// One axis after the other: a new dimension before it, broadcast, and merged with it.
pub(super) fn tile(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let mut value = node.value(0)?;
    let dims = node.dims(value);
    let repeats = node.integers(1)?.ok_or_else(|| LoadError::malformed("input 1, the repeats, is left out"))?;
    if repeats.len() != dims.len() {
        return Err(LoadError::malformed(format!("{} repeats for {} axes", repeats.len(), dims.len())));
    }
    for (axis, repeat) in repeats.into_iter().enumerate() {
        let repeat = usize::try_from(repeat)
            .map_err(|_| LoadError::malformed(format!("axis {axis} is to be repeated {repeat} times")))?;
        if repeat == 1 {
            continue;
        }
        let mut dims = node.dims(value);
        let Dim::Fixed(size) = dims[axis] else { return Err(rows_meet("they would be repeated")) };
        let whole = size.checked_mul(repeat).ok_or_else(|| LoadError::limit("it repeats too often"))?;
        if size == 1 {
            dims[axis] = Dim::Fixed(repeat);
            value = expanded(node, value, dims)?;
            continue;
        }
        // dimensions around the axis are merged where they can be, for a tensor has a limited number of them
        let mut apart = dims.clone();
        apart.insert(axis, Dim::Fixed(1));
        let apart = node.view(value, apart)?;
        let mut repeated = node.dims(apart);
        repeated[axis] = Dim::Fixed(repeat);
        let repeated = expanded(node, apart, repeated)?;
        dims[axis] = Dim::Fixed(whole);
        value = node.view(repeated, dims)?;
    }
    Ok(Item::Value(value))
}

pub(super) fn constant_of_shape(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let sizes = node.sizes(0)?.ok_or_else(|| LoadError::malformed("input 0, the shape, is left out"))?;
    let dims = target(&sizes)?;
    let constant = match node.attributes.tensor("value")? {
        Some(tensor) => node.tensors.read(tensor)?.reshaped(Shape::default())?,
        None => Constant::of_f32(DType::Fp32, Shape::default(), &[0.0])?,
    };
    let value = node.graph.add_constant(node.name.clone(), constant)?;
    expanded(node, value, dims).map(Item::Value)
}

/// How many elements a tensor has.
pub(super) fn size(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let elements = node.tensor(input).shape(1)?.elements();
    let size = match dims.contains(&Dim::Batch) {
        true if elements == 1 => Size::Batch,
        true => return Err(rows_meet("a multiple of their number would be computed with")),
        false => Size::Number(i64::try_from(elements).unwrap_or(i64::MAX)),
    };
    Ok(Item::Sizes(Sizes { sizes: SmallVec::from_iter([size]), scalar: true }))
}

/// start, start + delta, .. before limit; all known.
pub(super) fn range(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let mut parts = Vec::with_capacity(3);
    for index in 0..3 {
        let part = node.known(index)?.ok_or_else(|| LoadError::malformed(format!("input {index} is left out")))?;
        if part.shape().elements() != 1 {
            return Err(LoadError::malformed(format!("input {index} has shape {}, expected a scalar", part.shape())));
        }
        parts.push(part.clone());
    }
    let dtype = parts[0].dtype();
    if parts.iter().any(|part| part.dtype() != dtype) {
        return Err(LoadError::malformed("its inputs have different types"));
    }
    let too_many = || LoadError::limit("the range has too many elements");
    let count = range_count(&parts)?;
    let bytes = count.checked_mul(dtype.size().unwrap_or(8)).ok_or_else(too_many)?;
    if !node.graph.charge_derived(bytes) {
        return Err(too_many());
    }
    let shape = Shape::new(&[count])?;
    macro_rules! constant {
        ($type:ty, |$start:ident, $delta:ident, $k:ident| $element:expr) => {{
            let ($start, $delta) = (parts[0].typed::<$type>()?[0], parts[2].typed::<$type>()?[0]);
            let values: Vec<$type> = (0..count).map(|$k| $element).collect();
            Constant::new(dtype, shape, bytemuck::cast_slice(&values))?
        }};
    }
    let constant = match dtype {
        DType::Int16 => constant!(i16, |start, delta, k| start.wrapping_add(delta.wrapping_mul(k as i16))),
        DType::Int32 => constant!(i32, |start, delta, k| start.wrapping_add(delta.wrapping_mul(k as i32))),
        DType::Int64 => constant!(i64, |start, delta, k| start.wrapping_add(delta.wrapping_mul(k as i64))),
        DType::Fp32 => constant!(f32, |start, delta, k| start + k as f32 * delta),
        DType::Fp16 => constant!(f16, |start, delta, k| f16::from_f32(start.to_f32() + k as f32 * delta.to_f32())),
        DType::Bf16 => constant!(bf16, |start, delta, k| bf16::from_f32(start.to_f32() + k as f32 * delta.to_f32())),
        DType::Fp64 => constant!(f64, |start, delta, k| start + k as f64 * delta),
        other => return Err(not_a_range(other)),
    };
    node.graph.add_constant(node.name.clone(), constant).map(Item::Value)
}

fn not_a_range(dtype: DType) -> LoadError {
    LoadError::unsupported(format!("a range of {dtype}; INT16, INT32, INT64 and floats are supported"))
}

fn range_count(parts: &[Constant]) -> LoadResult<usize> {
    let integer = |constant: &Constant| match constant.dtype() {
        DType::Int16 => Ok::<i128, LoadError>(i128::from(constant.typed::<i16>()?[0])),
        _ => Ok(i128::from(constant.to_i64()?[0])),
    };
    let float = |constant: &Constant| match constant.dtype() {
        DType::Fp64 => Ok::<f64, LoadError>(constant.typed::<f64>()?[0]),
        DType::Bf16 => Ok(constant.typed::<bf16>()?[0].to_f64()),
        _ => Ok(f64::from(constant.to_f32()?[0])),
    };
    let zero = || LoadError::malformed("its delta is 0");
    match parts[0].dtype() {
        DType::Int16 | DType::Int32 | DType::Int64 => {
            let (start, limit, delta) = (integer(&parts[0])?, integer(&parts[1])?, integer(&parts[2])?);
            let reach = if delta > 0 { limit - start } else { start - limit };
            match delta.unsigned_abs() {
                0 => Err(zero()),
                step if reach > 0 => Ok(usize::try_from(reach.unsigned_abs().div_ceil(step)).unwrap_or(usize::MAX)),
                _ => Ok(0),
            }
        }
        DType::Fp16 | DType::Bf16 | DType::Fp32 | DType::Fp64 => {
            let (start, limit, delta) = (float(&parts[0])?, float(&parts[1])?, float(&parts[2])?);
            let count = ((limit - start) / delta).ceil();
            if delta == 0.0 || count.is_nan() { Err(zero()) } else { Ok(count.max(0.0) as usize) }
        }
        other => Err(not_a_range(other)),
    }
}

/// Ones on a diagonal, zeros elsewhere.
pub(super) fn eye_like(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let (rows, columns) = match node.dims(input)[..] {
        [Dim::Fixed(rows), Dim::Fixed(columns)] => (rows, columns),
        [Dim::Batch, _] => return Err(rows_meet("what a row holds would depend on its number")),
        _ => return Err(LoadError::malformed(format!("{} is no matrix", shown(&node.dims(input))))),
    };
    let offset = node.attributes.int("k")?.unwrap_or(0);
    let dtype = match node.attributes.int("dtype")? {
        Some(dtype) => element_type(i32::try_from(dtype).unwrap_or(0))?,
        None => node.tensor(input).dtype,
    };
    let one = one(dtype)?;
    let shape = Shape::new(&[rows, columns])?;
    let bytes = shape.bytes(dtype)?.unwrap_or(0);
    if !node.graph.charge_derived(bytes) {
        return Err(LoadError::limit("the matrix is too large"));
    }
    let mut elements = vec![0; bytes];
    for row in 0..rows {
        let column = (row as i64).checked_add(offset).and_then(|column| usize::try_from(column).ok());
        if let Some(column) = column.filter(|column| *column < columns) {
            let at = (row * columns + column) * one.len();
            elements[at..at + one.len()].copy_from_slice(&one);
        }
    }
    let constant = Constant::new(dtype, shape, &elements)?;
    node.graph.add_constant(node.name.clone(), constant).map(Item::Value)
}

/// The bytes of the number 1.
fn one(dtype: DType) -> LoadResult<Vec<u8>> {
    Ok(match dtype {
        DType::Fp16 => f16::ONE.to_le_bytes().to_vec(),
        DType::Bf16 => bf16::ONE.to_le_bytes().to_vec(),
        DType::Fp32 => 1f32.to_le_bytes().to_vec(),
        DType::Fp64 => 1f64.to_le_bytes().to_vec(),
        DType::Bytes => return Err(LoadError::unsupported("a matrix of byte strings")),
        integer => 1u64.to_le_bytes()[..integer.size().unwrap_or(1)].to_vec(),
    })
}
