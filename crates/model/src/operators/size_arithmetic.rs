//! How exporters compute the target of a Reshape or an Expand from a batched tensor's shape: the operators between, followed
//! on lists of sizes in which the batch's rows are a symbol. No tensor is made of them. The reader asks here first.

use insula_core::{DType, Shape};
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::operators::node_import::{Size, Sizes, resolve_axis};
use crate::operators::slicing::{cut, cuts};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::rows_meet;
use crate::tensor_reader::element_type;

/// What operator `name` makes of sizes with the batch's among them; `None` when it has none of these, or is to be imported like
/// any other.
pub(crate) fn follow_sizes(name: &str, node: &mut NodeImport<'_>) -> LoadResult<Option<Item>> {
    let batched = |item: &Option<Item>| matches!(item, Some(Item::Sizes(sizes)) if sizes.has_batch());
    if !node.inputs.iter().any(batched) {
        return Ok(None);
    }
    let first_batched = node.inputs.first().is_some_and(batched);
    let sizes = match name {
        "Gather" if first_batched => gather(node)?,
        "Slice" if first_batched => slice(node)?,
        "Concat" => concat(node)?,
        "Reshape" if first_batched => reshape(node)?,
        "Cast" => match cast(node)? {
            Some(sizes) => sizes,
            None => return Ok(None),
        },
        "Add" => element_by_element(node, add)?,
        "Sub" => element_by_element(node, subtract)?,
        "Mul" => element_by_element(node, multiply)?,
        "Div" => element_by_element(node, divide)?,
        "Equal" => return equal(node).map(Some),
        "Where" => choose(node)?,
        _ => return Ok(None),
    };
    Ok(Some(Item::Sizes(sizes)))
}

fn sizes(node: &NodeImport<'_>, index: usize) -> LoadResult<Sizes> {
    node.sizes(index)?.ok_or_else(|| LoadError::malformed(format!("input {index} is left out")))
}

fn vector(node: &NodeImport<'_>, index: usize) -> LoadResult<Sizes> {
    match sizes(node, index)? {
        sizes if sizes.scalar => Err(LoadError::malformed(format!("input {index} is a scalar"))),
        sizes => Ok(sizes),
    }
}

fn gather(node: &NodeImport<'_>) -> LoadResult<Sizes> {
    let sizes = vector(node, 0)?.sizes;
    resolve_axis(node.attributes.int("axis")?.unwrap_or(0), 1)?;
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
    let picked: LoadResult<_> = indices.iter().map(|&index| Ok(sizes[resolve_axis(index, sizes.len())?])).collect();
    Sizes::new(picked?, rank == 0)
}

fn slice(node: &NodeImport<'_>) -> LoadResult<Sizes> {
    let mut sizes = vector(node, 0)?.sizes;
    for one in cuts(node, 1)? {
        let slice = cut(0, sizes.len(), one.start, one.end, one.step);
        let position = |k: usize| slice.start.wrapping_add_signed(slice.step as isize * k as isize);
        sizes = (0..slice.size).filter_map(|k| sizes.get(position(k)).copied()).collect();
    }
    Sizes::new(sizes, false)
}

fn concat(node: &NodeImport<'_>) -> LoadResult<Sizes> {
    let axis = node.attributes.int("axis")?.ok_or_else(|| LoadError::malformed("attribute `axis` is missing"))?;
    resolve_axis(axis, 1)?;
    let mut joined = SmallVec::<[Size; 4]>::new();
    for index in 0..node.inputs.len() {
        joined = Sizes::new(joined.into_iter().chain(vector(node, index)?.sizes).collect(), false)?.sizes;
    }
    Sizes::new(joined, false)
}

/// To a vector, or a single one to a scalar.
fn reshape(node: &NodeImport<'_>) -> LoadResult<Sizes> {
    let sizes = sizes(node, 0)?.sizes;
    let zero_is_zero = node.opset >= 14 && node.attributes.flag("allowzero", false)?;
    let target = node.integers(1)?.ok_or_else(|| LoadError::malformed("input 1, the shape, is left out"))?;
    match target[..] {
        [] if sizes.len() == 1 => Sizes::new(sizes, true),
        [-1] => Sizes::new(sizes, false),
        [0] if !zero_is_zero => Sizes::new(sizes, false),
        [length] if usize::try_from(length) == Ok(sizes.len()) => Sizes::new(sizes, false),
        _ => Err(LoadError::unsupported("sizes taken from a shape with more than one dimension")),
    }
}

/// As they are, in either type that sizes are computed in.
fn cast(node: &NodeImport<'_>) -> LoadResult<Option<Sizes>> {
    let to = node.attributes.int("to")?.ok_or_else(|| LoadError::malformed("attribute `to` is missing"))?;
    if !matches!(element_type(i32::try_from(to).unwrap_or(0))?, DType::Int64 | DType::Int32) {
        return Ok(None);
    }
    if node.opset >= 19 {
        // these two say how to round to 8-bit floats
        node.attributes.int("saturate")?;
        node.attributes.text("round_mode")?;
    }
    sizes(node, 0).map(Some)
}

/// The sizes at `index` of two lists under numpy's broadcasting of vectors.
fn pairs<A: Copy, B: Copy>(a: &[A], b: &[B]) -> LoadResult<SmallVec<[(A, B); 4]>> {
    let length = if a.len() == 1 { b.len() } else { a.len() };
    if ![1, length].contains(&b.len()) || a.is_empty() || b.is_empty() {
        return Err(LoadError::malformed(format!("lists of {} and {} sizes do not fit together", a.len(), b.len())));
    }
    Ok((0..length).map(|index| (a[index.min(a.len() - 1)], b[index.min(b.len() - 1)])).collect())
}

fn element_by_element(node: &NodeImport<'_>, compute: fn(Size, Size) -> LoadResult<Size>) -> LoadResult<Sizes> {
    let (a, b) = (sizes(node, 0)?, sizes(node, 1)?);
    let computed: LoadResult<_> = pairs(&a.sizes, &b.sizes)?.into_iter().map(|(a, b)| compute(a, b)).collect();
    Sizes::new(computed?, a.scalar && b.scalar)
}

fn unknown() -> LoadError {
    rows_meet("a size that is neither fixed nor their number would be computed with")
}

fn add(a: Size, b: Size) -> LoadResult<Size> {
    match (a, b) {
        (Size::Number(a), Size::Number(b)) => Ok(Size::Number(a.wrapping_add(b))),
        (Size::Batch, Size::Number(0)) | (Size::Number(0), Size::Batch) => Ok(Size::Batch),
        _ => Err(unknown()),
    }
}

fn subtract(a: Size, b: Size) -> LoadResult<Size> {
    match (a, b) {
        (Size::Number(a), Size::Number(b)) => Ok(Size::Number(a.wrapping_sub(b))),
        (Size::Batch, Size::Number(0)) => Ok(Size::Batch),
        (Size::Batch, Size::Batch) => Ok(Size::Number(0)),
        _ => Err(unknown()),
    }
}

fn multiply(a: Size, b: Size) -> LoadResult<Size> {
    match (a, b) {
        (Size::Number(a), Size::Number(b)) => Ok(Size::Number(a.wrapping_mul(b))),
        (Size::Batch, Size::Number(1)) | (Size::Number(1), Size::Batch) => Ok(Size::Batch),
        (Size::Batch, Size::Number(0)) | (Size::Number(0), Size::Batch) => Ok(Size::Number(0)),
        _ => Err(unknown()),
    }
}

fn divide(a: Size, b: Size) -> LoadResult<Size> {
    match (a, b) {
        (_, Size::Number(0)) => Err(LoadError::malformed("a size is divided by 0")),
        (Size::Number(a), Size::Number(b)) => Ok(Size::Number(a.wrapping_div(b))),
        (Size::Batch, Size::Number(1)) => Ok(Size::Batch),
        (Size::Batch, Size::Batch) => Ok(Size::Number(1)),
        _ => Err(unknown()),
    }
}

/// There is at least one row, so no number of 0 or below is theirs.
fn equal(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (a, b) = (sizes(node, 0)?, sizes(node, 1)?);
    let same = |(a, b): (Size, Size)| match (a, b) {
        (Size::Number(a), Size::Number(b)) => Ok(u8::from(a == b)),
        (Size::Batch, Size::Batch) => Ok(1),
        (Size::Batch, Size::Number(number)) | (Size::Number(number), Size::Batch) if number <= 0 => Ok(0),
        _ => Err(unknown()),
    };
    let bytes: Vec<u8> = pairs(&a.sizes, &b.sizes)?.into_iter().map(same).collect::<LoadResult<_>>()?;
    let shape = if a.scalar && b.scalar { Shape::default() } else { Shape::new(&[bytes.len()])? };
    let constant = Constant::new(DType::Bool, shape, &bytes)?;
    node.graph.add_constant(node.name.clone(), constant).map(Item::Value)
}

fn choose(node: &mut NodeImport<'_>) -> LoadResult<Sizes> {
    let (a, b) = (sizes(node, 1)?, sizes(node, 2)?);
    let condition = node.known(0)?.ok_or_else(|| LoadError::malformed("input 0 is left out"))?;
    let scalar = condition.shape().rank() == 0 && a.scalar && b.scalar;
    if condition.dtype() != DType::Bool || condition.shape().rank() > 1 {
        return Err(LoadError::unsupported(format!(
            "a condition {} {}, expected a BOOL vector",
            condition.dtype(),
            condition.shape()
        )));
    }
    let chosen = pairs(&pairs(condition.bytes(), &a.sizes)?, &b.sizes)?;
    let chosen = chosen.into_iter().map(|((condition, a), b)| if condition != 0 { a } else { b }).collect();
    Sizes::new(chosen, scalar)
}
