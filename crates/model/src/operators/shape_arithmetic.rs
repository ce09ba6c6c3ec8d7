//! Constant, and Shape, whose sizes are known at load.

use insula_core::{DType, Shape};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::Dim;
use crate::operators::node_import::{Size, Sizes};
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
