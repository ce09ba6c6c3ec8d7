//! Operators that change a tensor's shape or nothing at all: views, and Transpose.

use insula_core::DType;
use smallvec::SmallVec;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{Axes, Comparison};
use crate::operators::node_import::{Size, Sizes, resolve_axis};
use crate::operators::reduction::resolve_axes;
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, rows_meet, shown};

pub(super) fn identity(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    match node.inputs.first().cloned().flatten() {
        Some(item) => Ok(item),
        None => Err(LoadError::malformed("input 0 is left out")),
    }
}

/// Does nothing at inference, nor in training with the ratio 0. Its mask is all true.
pub(super) fn dropout(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    if node.opset < 12 {
        node.attributes.float("ratio")?;
        if node.inputs.len() > 1 {
            return Err(LoadError::malformed("its ratio is an attribute before opset 12, not an input"));
        }
    } else {
        node.attributes.int("seed")?;
        let ratio = node.scalar(1)?;
        if let Some(training) = node.optional(2)? {
            let off =
                node.graph.constant(training).is_some_and(|constant| constant.bytes().iter().all(|byte| *byte == 0));
            if !off && ratio != Some(0.0) {
                return Err(LoadError::unsupported(
                    "`training_mode` is not the constant false; models are run for inference alone",
                ));
            }
        }
    }
    if node.wants(1) {
        let input = node.value(0)?;
        let dtype = if node.opset < 10 { node.tensor(input).dtype } else { DType::Bool };
        let truth = node.cast(input, DType::Bool)?;
        let same = node.compare(Comparison::Equal, truth, truth)?;
        let mask = node.cast(same, dtype)?;
        node.more_outputs.push(Item::Value(mask));
    }
    identity(node)
}

pub(super) fn flatten(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dims = node.dims(input);
    let axis = node.attributes.int("axis")?.unwrap_or(1);
    let axis = match usize::try_from(axis) {
        Ok(axis) if axis == dims.len() => axis,
        _ => resolve_axis(axis, dims.len())?,
    };
    let (outer, inner) = dims.split_at(axis);
    let flat = [product(outer)?, product(inner)?].into_iter().collect();
    node.view(input, flat).map(Item::Value)
}

pub(super) fn reshape(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let zero_is_zero = node.opset >= 14 && node.attributes.flag("allowzero", false)?;
    let sizes = node.sizes(1)?.ok_or_else(|| LoadError::malformed("input 1, the shape, is left out"))?;
    let target: LoadResult<SmallVec<[Target; 4]>> =
        sizes.sizes.iter().map(|size| Target::new(*size, zero_is_zero)).collect();
    let dims = resolve_target(&node.dims(input), &target?)?;
    node.view(input, dims).map(Item::Value)
}

/// The axes are an attribute before opset 13 and a constant input from then on.
pub(super) fn squeeze(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let axes = axes(node)?;
    if let Some(Item::Sizes(sizes)) = &node.inputs[0] {
        return match (sizes.scalar, sizes.sizes.len(), axes.as_deref()) {
            (false, 1, None | Some([0 | -1])) => Ok(Item::Sizes(Sizes { scalar: true, ..sizes.clone() })),
            _ => Err(LoadError::malformed("it would remove a dimension that is not 1")),
        };
    }
    let input = node.value(0)?;
    let dims = node.dims(input);
    let removed: Axes = match axes {
        Some(axes) => resolve_axes(&axes, dims.len())?,
        None => (0..dims.len()).filter(|&axis| dims[axis] == Dim::Fixed(1)).collect(),
    };
    if let Some(axis) = removed.iter().find(|&&axis| dims[axis] != Dim::Fixed(1)) {
        return Err(LoadError::malformed(format!(
            "axis {axis} of shape {} is not 1 and cannot be removed",
            shown(&dims)
        )));
    }
    let kept = dims.iter().enumerate().filter(|(axis, _)| !removed.contains(axis)).map(|(_, dim)| *dim).collect();
    node.view(input, kept).map(Item::Value)
}

/// The axes are an attribute before opset 13 and a constant input from then on.
pub(super) fn unsqueeze(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let axes = axes(node)?.ok_or_else(|| LoadError::malformed("its axes are missing"))?;
    if let Some(Item::Sizes(sizes)) = &node.inputs[0] {
        return match (sizes.scalar, &axes[..]) {
            (true, [0 | -1]) => Ok(Item::Sizes(Sizes { scalar: false, ..sizes.clone() })),
            _ => Err(LoadError::unsupported("sizes taken from a shape with more than one dimension")),
        };
    }
    let input = node.value(0)?;
    let dims = node.dims(input);
    let added = resolve_axes(&axes, dims.len() + axes.len())?;
    let mut old = dims.iter();
    let new: Dims = (0..dims.len() + axes.len())
        .map(|axis| match added.contains(&axis) {
            true => Dim::Fixed(1),
            false => *old.next().unwrap_or(&Dim::Fixed(1)),
        })
        .collect();
    node.view(input, new).map(Item::Value)
}

/// Channels become blocks of pixels: a transposition between two views.
pub(super) fn depth_to_space(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let (size, [rows, channels, height, width]) = blocks(node, input)?;
    let columns_first = match node.attributes.text("mode")?.unwrap_or("DCR") {
        "DCR" => false,
        "CRD" => true,
        _ => return Err(LoadError::malformed("attribute `mode` must be DCR or CRD")),
    };
    if !channels.is_multiple_of(size * size) {
        return Err(LoadError::malformed(format!("{channels} channels are no blocks of {size} x {size}")));
    }
    let depth = channels / (size * size);
    let (apart, permutation) = match columns_first {
        true => ([depth, size, size, height, width], [0, 1, 4, 2, 5, 3]),
        false => ([size, size, depth, height, width], [0, 3, 4, 1, 5, 2]),
    };
    rearranged(node, input, rows, &apart, &permutation, [depth, height * size, width * size])
}

/// Blocks of pixels become channels.
pub(super) fn space_to_depth(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let (size, [rows, channels, height, width]) = blocks(node, input)?;
    if !height.is_multiple_of(size) || !width.is_multiple_of(size) {
        return Err(LoadError::malformed(format!("{height} x {width} pixels are no blocks of {size} x {size}")));
    }
    let columns_first = match node.opset >= 28 {
        true => node.attributes.text("mode")?.unwrap_or("DCR") == "CRD",
        false => false,
    };
    let apart = [channels, height / size, size, width / size, size];
    let to = [channels * size * size, height / size, width / size];
    let permutation = if columns_first { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    rearranged(node, input, rows, &apart, &permutation, to)
}

/// The block's size and the image's dimensions; 0 stands for the rows of a batch.
fn blocks(node: &NodeImport<'_>, input: ValueId) -> LoadResult<(usize, [usize; 4])> {
    let size = node.attributes.int("blocksize")?.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| (1..=1 << 16).contains(size));
    let size = size.ok_or_else(|| LoadError::malformed("attribute `blocksize` must be 1 to 65536"))?;
    match node.dims(input)[..] {
        [rows, Dim::Fixed(channels), Dim::Fixed(height), Dim::Fixed(width)] => {
            let rows = if let Dim::Fixed(rows) = rows { rows } else { 0 };
            Ok((size, [rows, channels, height, width]))
        }
        ref other => Err(LoadError::malformed(format!("{} are no images", shown(other)))),
    }
}

fn rearranged(
    node: &mut NodeImport<'_>,
    input: ValueId,
    rows: usize,
    apart: &[usize],
    permutation: &[usize],
    to: [usize; 3],
) -> LoadResult<Item> {
    let rows = if rows == 0 { Dim::Batch } else { Dim::Fixed(rows) };
    let dims = |sizes: &[usize]| [rows].into_iter().chain(sizes.iter().map(|size| Dim::Fixed(*size))).collect::<Dims>();
    let apart = node.view(input, dims(apart))?;
    let moved = node.transpose(apart, permutation)?;
    node.view(moved, dims(&to)).map(Item::Value)
}

pub(super) fn transpose(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let rank = node.rank(input);
    let permutation: Axes = match node.attributes.ints("perm")? {
        Some(axes) => axes.iter().map(|&axis| resolve_axis(axis, rank)).collect::<LoadResult<_>>()?,
        None => (0..rank).rev().collect(),
    };
    node.transpose(input, &permutation).map(Item::Value)
}

/// An entry of Reshape's second input.
enum Target {
    Dim(Dim),
    CopyInput,
    Rest,
}

impl Target {
    fn new(size: Size, zero_is_zero: bool) -> LoadResult<Target> {
        let Size::Number(size) = size else { return Ok(Target::Dim(Dim::Batch)) };
        match usize::try_from(size) {
            Ok(0) if !zero_is_zero => Ok(Target::CopyInput),
            Ok(size) => Ok(Target::Dim(Dim::Fixed(size))),
            Err(_) if size == -1 => Ok(Target::Rest),
            Err(_) => Err(LoadError::malformed(format!("the shape holds {size}, expected sizes, 0 or one -1"))),
        }
    }
}

/// The dimensions that `target` means for a tensor of `dims`. The batch stays dimension 0: as 0, as -1 whose rest holds exactly
/// the elements of a row, or as taken from a shape.
fn resolve_target(dims: &[Dim], target: &[Target]) -> LoadResult<Dims> {
    let mut resolved = Dims::new();
    let mut rest = None;
    for (index, entry) in target.iter().enumerate() {
        resolved.push(match entry {
            Target::Dim(dim) => *dim,
            Target::CopyInput => *dims.get(index).ok_or_else(|| {
                LoadError::malformed(format!(
                    "entry {index} of the shape is 0, but the input has {} dimensions",
                    dims.len()
                ))
            })?,
            Target::Rest if rest.replace(index).is_none() => Dim::Fixed(1),
            Target::Rest => return Err(LoadError::malformed("the shape holds more than one -1")),
        });
    }
    let batched = dims.contains(&Dim::Batch);
    let (elements, found) = (row_elements(dims)?, row_elements(&resolved)?);
    match rest {
        Some(0) if batched && !resolved.contains(&Dim::Batch) => {
            if found != elements {
                return Err(rows_meet(&format!(
                    "reshaping {} to -1 and {found} elements would merge or split rows",
                    shown(dims)
                )));
            }
            resolved[0] = Dim::Batch;
        }
        Some(index) if found > 0 && elements.is_multiple_of(found) => resolved[index] = Dim::Fixed(elements / found),
        Some(_) => {
            return Err(LoadError::malformed(format!(
                "{} cannot be reshaped: {elements} is no multiple of {found}",
                shown(dims)
            )));
        }
        None => {}
    }
    if batched && !resolved.contains(&Dim::Batch) {
        return Err(rows_meet(&format!("reshaping {} to {} would fix it", shown(dims), shown(&resolved))));
    }
    Ok(resolved)
}

fn row_elements(dims: &[Dim]) -> LoadResult<usize> {
    let sizes = dims.iter().map(|dim| match dim {
        Dim::Fixed(size) => *size,
        Dim::Batch => 1,
    });
    sizes
        .into_iter()
        .try_fold(1usize, usize::checked_mul)
        .ok_or_else(|| LoadError::limit("its shape has too many elements"))
}

/// The product of `dims`, where the batch may stand beside ones alone.
fn product(dims: &[Dim]) -> LoadResult<Dim> {
    match (dims.contains(&Dim::Batch), row_elements(dims)?) {
        (false, elements) => Ok(Dim::Fixed(elements)),
        (true, 1) => Ok(Dim::Batch),
        (true, _) => Err(rows_meet(&format!("flattening would merge it with others of {}", shown(dims)))),
    }
}

fn axes(node: &NodeImport<'_>) -> LoadResult<Option<Vec<i64>>> {
    match node.opset < 13 {
        true if node.inputs.len() > 1 => {
            Err(LoadError::malformed("its axes are an attribute before opset 13, not an input"))
        }
        true => Ok(node.attributes.ints("axes")?.map(<[i64]>::to_vec)),
        false => node.integers(1),
    }
}
