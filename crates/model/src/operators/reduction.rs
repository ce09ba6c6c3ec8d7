//! Reductions, positions of extremes, running sums and products.

use crate::error::{LoadError, LoadResult};
use crate::op::{ArgExtreme, Axes, Cumulative, Op, Reduction};
use crate::operators::node_import::resolve_axis;
use crate::operators::{Item, NodeImport};

macro_rules! reductions {
    ($($name:ident: $reduction:ident from $opset:literal),*) => {$(
        pub(super) fn $name(node: &mut NodeImport<'_>) -> LoadResult<Item> {
            reduce(node, Reduction::$reduction, $opset)
        }
    )*};
}
reductions! {
    reduce_sum: Sum from 13, reduce_mean: Mean from 18, reduce_max: Max from 18, reduce_min: Min from 18,
    reduce_prod: Prod from 18, reduce_l1: L1 from 18, reduce_l2: L2 from 18, reduce_log_sum: LogSum from 18,
    reduce_log_sum_exp: LogSumExp from 18, reduce_sum_square: SumSquare from 18
}

/// The axes are an attribute before opset `inputs_from` and a constant input from then on. None means all, or with
/// `noop_with_empty_axes` none.
fn reduce(node: &mut NodeImport<'_>, reduction: Reduction, inputs_from: i64) -> LoadResult<Item> {
    let input = node.value(0)?;
    let rank = node.rank(input);
    let keep_dims = node.attributes.flag("keepdims", true)?;
    let given = match node.opset < inputs_from {
        true if node.inputs.len() > 1 => {
            return Err(LoadError::malformed(format!(
                "its axes are an attribute before opset {inputs_from}, not an input"
            )));
        }
        true => node.attributes.ints("axes")?.map(<[i64]>::to_vec),
        false => node.integers(1)?,
    };
    let none = node.opset >= inputs_from && node.attributes.flag("noop_with_empty_axes", false)?;
    let axes = match given.filter(|axes| !axes.is_empty()) {
        Some(given) => resolve_axes(&given, rank)?,
        None if none => Axes::new(),
        None => (0..rank).collect(),
    };
    node.reduce_to(reduction, input, axes, keep_dims).map(Item::Value)
}

pub(super) fn arg_max(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    arg_extreme(node, true)
}

pub(super) fn arg_min(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    arg_extreme(node, false)
}

fn arg_extreme(node: &mut NodeImport<'_>, largest: bool) -> LoadResult<Item> {
    let input = node.value(0)?;
    let axis = resolve_axis(node.attributes.int("axis")?.unwrap_or(0), node.rank(input))?;
    let keep_dims = node.attributes.flag("keepdims", true)?;
    let select_last_index = node.opset >= 12 && node.attributes.flag("select_last_index", false)?;
    node.compute(Op::ArgExtreme(ArgExtreme { largest, axis, keep_dims, select_last_index }), &[input]).map(Item::Value)
}

pub(super) fn cum_sum(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    cumulative(node, false)
}

pub(super) fn cum_prod(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    cumulative(node, true)
}

fn cumulative(node: &mut NodeImport<'_>, product: bool) -> LoadResult<Item> {
    let input = node.value(0)?;
    let (exclusive, reverse) = (node.attributes.flag("exclusive", false)?, node.attributes.flag("reverse", false)?);
    let axis = match node.integers(1)?.as_deref() {
        Some([axis]) => resolve_axis(*axis, node.rank(input))?,
        _ => return Err(LoadError::malformed("its axis must be one integer")),
    };
    node.compute(Op::Cumulative(Cumulative { product, axis, exclusive, reverse }), &[input]).map(Item::Value)
}

/// The axes that ONNX's `axes` mean, ascending. Fails when one is given twice.
pub(super) fn resolve_axes(axes: &[i64], rank: usize) -> LoadResult<Axes> {
    let resolved: LoadResult<Axes> = axes.iter().map(|&axis| resolve_axis(axis, rank)).collect();
    let mut resolved = resolved?;
    resolved.sort_unstable();
    match resolved.windows(2).any(|pair| pair[0] == pair[1]) {
        false => Ok(resolved),
        true => Err(LoadError::malformed(format!("the axes {axes:?} name one twice"))),
    }
}
