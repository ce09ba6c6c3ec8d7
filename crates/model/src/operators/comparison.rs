//! Comparisons, truth values, bits and choices.

use insula_core::{DType, Shape};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::ValueId;
use crate::op::{Bitwise, Comparison, Elementwise, Function, Op};
use crate::operators::{Item, NodeImport};

macro_rules! comparisons {
    ($($name:ident: $comparison:ident),*) => {$(
        pub(super) fn $name(node: &mut NodeImport<'_>) -> LoadResult<Item> {
            let (left, right) = (node.value(0)?, node.value(1)?);
            node.compare(Comparison::$comparison, left, right).map(Item::Value)
        }
    )*};
}
comparisons!(equal: Equal, less: Less, less_or_equal: LessOrEqual, greater: Greater, greater_or_equal: GreaterOrEqual);

pub(super) fn choice(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let (condition, chosen, otherwise) = (node.value(0)?, node.value(1)?, node.value(2)?);
    node.choose(condition, chosen, otherwise).map(Item::Value)
}

macro_rules! bitwise {
    ($($name:ident: $bitwise:ident),*) => {$(
        pub(super) fn $name(node: &mut NodeImport<'_>) -> LoadResult<Item> {
            let (left, right) = (node.value(0)?, node.value(1)?);
            combine(node, Bitwise::$bitwise, left, right).map(Item::Value)
        }
    )*};
}
bitwise!(and: And, or: Or, xor: Xor);

fn combine(node: &mut NodeImport<'_>, bitwise: Bitwise, left: ValueId, right: ValueId) -> LoadResult<ValueId> {
    node.compute(Op::Elementwise(Elementwise::Bitwise(bitwise)), &[left, right])
}

pub(super) fn shift(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let direction = match node.attributes.text("direction")? {
        Some("LEFT") => Bitwise::ShiftLeft,
        Some("RIGHT") => Bitwise::ShiftRight,
        _ => return Err(LoadError::malformed("attribute `direction` is neither `LEFT` nor `RIGHT`")),
    };
    let (left, right) = (node.value(0)?, node.value(1)?);
    combine(node, direction, left, right).map(Item::Value)
}

/// Is it false?
pub(super) fn not(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    inverted(node, input).map(Item::Value)
}

fn inverted(node: &mut NodeImport<'_>, input: ValueId) -> LoadResult<ValueId> {
    let no = node.number(DType::Bool, 0.0)?;
    node.compare(Comparison::Equal, input, no)
}

/// Other than all ones.
pub(super) fn bitwise_not(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let dtype = node.tensor(input).dtype;
    let size = dtype.size().unwrap_or_default();
    let ones = Constant::new(dtype, Shape::default(), &[u8::MAX; 8][..size])?;
    let ones = node.graph.add_constant(node.name.clone(), ones)?;
    combine(node, Bitwise::Xor, input, ones).map(Item::Value)
}

/// Is it other than itself?
pub(super) fn is_nan(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input = node.value(0)?;
    let same = node.compare(Comparison::Equal, input, input)?;
    inverted(node, same).map(Item::Value)
}

pub(super) fn is_inf(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let negative = node.attributes.flag("detect_negative", true)?;
    let positive = node.attributes.flag("detect_positive", true)?;
    let input = node.value(0)?;
    let dtype = node.tensor(input).dtype;
    let (looked_at, limit) = match (negative, positive) {
        (true, true) => (node.function(Function::Abs, input)?, f64::INFINITY),
        (true, false) => (input, f64::NEG_INFINITY),
        (false, true) => (input, f64::INFINITY),
        // nothing equals NaN
        (false, false) => (input, f64::NAN),
    };
    let limit = node.number(dtype, limit)?;
    node.compare(Comparison::Equal, looked_at, limit).map(Item::Value)
}
