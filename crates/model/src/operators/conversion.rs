//! Conversions between element types.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::op::{Elementwise, Op};
use crate::operators::{Item, NodeImport};
use crate::tensor_reader::element_type;

pub(super) fn cast(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let to = target(node)?;
    read_rounding(node)?;
    converted(node, to)
}

/// To the type of the second input.
pub(super) fn cast_like(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    read_rounding(node)?;
    let to = match node.inputs.get(1) {
        Some(Some(Item::Sizes(_))) => DType::Int64,
        _ => {
            let like = node.value(1)?;
            node.tensor(like).dtype
        }
    };
    converted(node, to)
}

pub(super) fn bit_cast(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let to = target(node)?;
    let input = node.value(0)?;
    node.compute(Op::Elementwise(Elementwise::BitCast { to }), &[input]).map(Item::Value)
}

fn target(node: &NodeImport<'_>) -> LoadResult<DType> {
    let to = node.attributes.int("to")?.ok_or_else(|| LoadError::malformed("attribute `to` is missing"))?;
    element_type(i32::try_from(to).unwrap_or(0))
}

/// Two attributes say how to round to 8-bit floats, which are refused.
fn read_rounding(node: &NodeImport<'_>) -> LoadResult<()> {
    if node.opset >= 19 {
        node.attributes.int("saturate")?;
        node.attributes.text("round_mode")?;
    }
    Ok(())
}

/// A cast to the type that the tensor has already is the tensor itself.
fn converted(node: &mut NodeImport<'_>, to: DType) -> LoadResult<Item> {
    if let (DType::Int64, Some(Some(Item::Sizes(sizes)))) = (to, node.inputs.first()) {
        return Ok(Item::Sizes(sizes.clone()));
    }
    let input = node.value(0)?;
    node.cast(input, to).map(Item::Value)
}
