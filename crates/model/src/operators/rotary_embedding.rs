//! RotaryEmbedding: pairs of elements turned by angles of their positions, made of slices, products and a joint.

use smallvec::smallvec;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::Op;
use crate::op::elementwise::BinaryOp;
use crate::op::movement::{AxisSlice, Movement};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::shown;

pub(super) fn rotary_embedding(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let interleaved = node.attributes.flag("interleaved", false)?;
    let turned = node.attributes.int("rotary_embedding_dim")?.unwrap_or(0);
    let heads = node.attributes.int("num_heads")?.unwrap_or(0);
    let dims = node.dims(input);
    let (parts, head_axis) = match (&dims[..], usize::try_from(heads)) {
        ([_, _, _, Dim::Fixed(_)], _) => (input, 1),
        (&[batch, sequence, Dim::Fixed(hidden)], Ok(heads)) if heads > 0 && hidden.is_multiple_of(heads) => {
            let cut = [batch, sequence, Dim::Fixed(heads), Dim::Fixed(hidden / heads)];
            (node.view(input, cut.into_iter().collect())?, 2)
        }
        _ => {
            return Err(LoadError::malformed(format!("{} cannot be cut into {heads} heads", shown(&dims))));
        }
    };
    let Some(Dim::Fixed(width)) = node.dims(parts).last().copied() else {
        return Err(LoadError::malformed("its heads have no width"));
    };
    let turned = match usize::try_from(turned) {
        Ok(0) => width,
        Ok(turned) if turned <= width => turned,
        _ => return Err(LoadError::malformed(format!("attribute `rotary_embedding_dim` is {turned}, of {width}"))),
    };
    let half = turned / 2;
    let (first, second) = match interleaved {
        true => (slice(node, parts, 0, 2, half)?, slice(node, parts, 1, 2, half)?),
        false => (slice(node, parts, 0, 1, half)?, slice(node, parts, half, 1, half)?),
    };
    let (cosine, sine) = (angles(node, 1, head_axis)?, angles(node, 2, head_axis)?);
    let mut product = |op, left, right| node.compute(Op::Binary(op), &[left, right]);
    let (real_cosine, real_sine) = (product(BinaryOp::Mul, cosine, first)?, product(BinaryOp::Mul, sine, second)?);
    let (other_sine, other_cosine) = (product(BinaryOp::Mul, sine, first)?, product(BinaryOp::Mul, cosine, second)?);
    let real = product(BinaryOp::Sub, real_cosine, real_sine)?;
    let imaginary = product(BinaryOp::Add, other_sine, other_cosine)?;
    let mut output = joined(node, real, imaginary, interleaved)?;
    if turned < width {
        let rest = slice(node, parts, turned, 1, width - turned)?;
        output = node.compute(Op::Move(Movement::Concat { axis: 3 }), &[output, rest])?;
    }
    node.view(output, dims).map(Item::Value)
}

/// `size` elements of the last of four axes.
fn slice(node: &mut NodeImport<'_>, value: ValueId, start: usize, step: i64, size: usize) -> LoadResult<ValueId> {
    node.compute(Op::Move(Movement::Slice(smallvec![AxisSlice { axis: 3, start, step, size }])), &[value])
}

/// Input `index`, cosines or sines, for each batch and position, with an axis of one for the heads.
fn angles(node: &mut NodeImport<'_>, index: usize, head_axis: usize) -> LoadResult<ValueId> {
    let cache = node.value(index)?;
    let angles = match node.optional(3)? {
        Some(positions) => node.compute(Op::Move(Movement::Gather { axis: 0 }), &[cache, positions])?,
        None => cache,
    };
    let mut dims = node.dims(angles);
    if dims.len() != 3 {
        return Err(LoadError::malformed(format!("its cosines or sines have shape {}", shown(&dims))));
    }
    dims.insert(head_axis, Dim::Fixed(1));
    node.view(angles, dims)
}

/// Both parts one behind the other, or in turns.
fn joined(node: &mut NodeImport<'_>, real: ValueId, imaginary: ValueId, interleaved: bool) -> LoadResult<ValueId> {
    if !interleaved {
        return node.compute(Op::Move(Movement::Concat { axis: 3 }), &[real, imaginary]);
    }
    let mut dims = node.dims(real);
    dims.push(Dim::Fixed(1));
    let (real, imaginary) = (node.view(real, dims.clone())?, node.view(imaginary, dims.clone())?);
    let pairs = node.compute(Op::Move(Movement::Concat { axis: 4 }), &[real, imaginary])?;
    dims.pop();
    if let Some(Dim::Fixed(size)) = dims.last_mut() {
        *size *= 2;
    }
    node.view(pairs, dims)
}
