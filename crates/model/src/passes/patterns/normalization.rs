//! Layer and root-mean-square normalisation along the last axis: first the quotient, then link by link its factor and summand.

use super::{Found, Patterns};
use crate::graph::{Dim, ValueId};
use crate::op::{BinaryOp, Function, Op, Reduction};
use crate::shape_inference::is_arithmetic;

/// The normalisation that `left` `op` `right` is or completes.
pub(super) fn found(patterns: &Patterns<'_>, op: BinaryOp, left: ValueId, right: ValueId) -> Option<Found> {
    match op {
        BinaryOp::Div => quotient(patterns, left, right),
        BinaryOp::Mul => {
            let reciprocal = |value: ValueId, other: ValueId| {
                patterns
                    .argument(value, Function::Reciprocal)
                    .and_then(|deviation| quotient(patterns, other, deviation))
            };
            let whole = reciprocal(right, left).or_else(|| reciprocal(left, right));
            whole.or_else(|| extended(patterns, left, right, 1)).or_else(|| extended(patterns, right, left, 1))
        }
        BinaryOp::Add => extended(patterns, left, right, 2).or_else(|| extended(patterns, right, left, 2)),
        _ => None,
    }
}

/// `dividend` by the root of its mean square plus a number: what is left of x without its mean, or any tensor.
fn quotient(patterns: &Patterns<'_>, dividend: ValueId, divisor: ValueId) -> Option<Found> {
    let variance = patterns.argument(divisor, Function::Sqrt)?;
    let (mean_square, epsilon) = patterns.plus_number(variance)?;
    let square = mean(patterns, mean_square)?;
    if square_of(patterns, square)? != dividend || !is_arithmetic(patterns.graph.tensor(dividend).dtype) {
        return None;
    }
    let centred = patterns.operands(dividend, BinaryOp::Sub).filter(|(x, x_mean)| mean(patterns, *x_mean) == Some(*x));
    let op = Op::Normalize { centred: centred.is_some(), epsilon };
    let input = centred.map_or(dividend, |(x, _)| x);
    Some(Found { op, inputs: vec![input] })
}

/// The tensor whose mean along the last axis, kept with size 1, `value` is.
fn mean(patterns: &Patterns<'_>, value: ValueId) -> Option<ValueId> {
    let (reduce, input) = patterns.reduction(value)?;
    let last = patterns.graph.tensor(input).dims.len().checked_sub(1)?;
    (reduce.reduction == Reduction::Mean && reduce.keep_dims && reduce.axes[..] == [last]).then_some(input)
}

fn square_of(patterns: &Patterns<'_>, value: ValueId) -> Option<ValueId> {
    if let Some((left, right)) = patterns.operands(value, BinaryOp::Mul) {
        return (left == right).then_some(left);
    }
    let (base, exponent) = patterns.operands(value, BinaryOp::Pow)?;
    (patterns.number(exponent) == Some(2.0)).then_some(base)
}

/// `normal`, a normalisation of `inputs` inputs that nothing else reads, with `operand` as one more.
fn extended(patterns: &Patterns<'_>, normal: ValueId, operand: ValueId, inputs: usize) -> Option<Found> {
    let (op @ Op::Normalize { .. }, found) = patterns.operation(normal)? else { return None };
    let last = patterns.graph.tensor(normal).dims.last()?;
    let vector = patterns.graph.tensor(operand).dims[..] == [*last] && matches!(last, Dim::Fixed(_));
    let alone = patterns.readers[normal.index()] == 1;
    (found.len() == inputs && vector && alone)
        .then(|| Found { op: op.clone(), inputs: found.iter().copied().chain([operand]).collect() })
}
