//! Constant, and the operators by which exporters compute a Reshape's target: Shape, Gather and Concat, which work on sizes
//! known at load and on nothing else.

use insula_core::{DType, Shape};
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::operators::node_import::{Size, Sizes, resolve_axis};
use crate::operators::{Item, NodeImport};

pub(super) fn constant(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let attributes = &node.attributes;
    let vector = |count: usize| Shape::new(&[count]);
    let constant = if let Some(tensor) = attributes.tensor("value")? {
        node.tensors.read(tensor)?
    } else if let Some(value) = attributes.float("value_float")? {
        Constant::of_f32(DType::Fp32, Shape::default(), &[value])?
    } else if let Some(values) = attributes.floats("value_floats")? {
        Constant::of_f32(DType::Fp32, vector(values.len())?, values)?
    } else if let Some(value) = attributes.int("value_int")? {
        Constant::new(DType::Int64, Shape::default(), &value.to_le_bytes())?
    } else if let Some(values) = attributes.ints("value_ints")? {
        Constant::new(DType::Int64, vector(values.len())?, bytemuck::cast_slice(values))?
    } else {
        return Err(LoadError::unsupported(
            "it has none of the attributes `value`, `value_float`, `value_floats`, `value_int` and `value_ints`",
        ));
    };
    node.graph.add_file_constant(node.name.clone(), constant).map(Item::Value)
}

/// The sizes of a tensor; `start` and `end` cut the list as numpy's slices do.
pub(super) fn shape(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let rank = dims.len() as i64;
    let bound = |value: i64| {
        usize::try_from(if value < 0 { value.saturating_add(rank) } else { value }.clamp(0, rank)).unwrap_or(0)
    };
    let (start, end) = match node.opset >= 15 {
        true => (node.attributes.int("start")?.unwrap_or(0), node.attributes.int("end")?.unwrap_or(rank)),
        false => (0, rank),
    };
    let (start, end) = (bound(start), bound(end));
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => Size::Number(i64::try_from(*size).unwrap_or(i64::MAX)),
        Dim::Batch => Size::Batch,
    };
    Ok(Item::Sizes(Sizes { sizes: dims[start.min(end)..end].iter().map(size).collect(), scalar: false }))
}

pub(super) fn gather(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let sizes = sizes(node, 0)?;
    if resolve_axis(node.attributes.int("axis")?.unwrap_or(0), 1)? != 0 || sizes.scalar {
        return Err(LoadError::malformed("its input is a scalar"));
    }
    let indices = node.integers(1)?.ok_or_else(|| LoadError::malformed("input 1 is left out"))?;
    let rank = match &node.inputs[1] {
        Some(Item::Value(value)) => node.rank(*value),
        Some(Item::Sizes(sizes)) => usize::from(!sizes.scalar),
        None => 1,
    };
    if rank > 1 {
        return Err(LoadError::unsupported(format!(
            "indices with {rank} dimensions; a scalar or a vector is supported"
        )));
    }
    let picked: LoadResult<_> =
        indices.iter().map(|&index| Ok(sizes.sizes[resolve_axis(index, sizes.sizes.len())?])).collect();
    Sizes::new(picked?, rank == 0).map(Item::Sizes)
}

pub(super) fn concat(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let axis = node.attributes.int("axis")?.ok_or_else(|| LoadError::malformed("attribute `axis` is missing"))?;
    resolve_axis(axis, 1)?;
    let mut joined = SmallVec::<[Size; 4]>::new();
    for index in 0..node.inputs.len() {
        let part = sizes(node, index)?;
        if part.scalar {
            return Err(LoadError::malformed(format!("input {index} is a scalar")));
        }
        joined = Sizes::new(joined.into_iter().chain(part.sizes).collect(), false)?.sizes;
    }
    Ok(Item::Sizes(Sizes { sizes: joined, scalar: false }))
}

fn sizes(node: &NodeImport<'_>, index: usize) -> LoadResult<Sizes> {
    node.sizes(index)?.ok_or_else(|| LoadError::malformed(format!("input {index} is left out")))
}
