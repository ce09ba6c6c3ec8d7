//! Activations: products of a tensor, a function of it and a number, in any order.

use super::{Found, Patterns, close};
use crate::graph::ValueId;
use crate::op::{Activation, BinaryOp, Function, Op};

/// How deep products are looked into: longer ones are something else.
const DEPTH: usize = 4;

/// The activation that `left` `op` `right` is.
pub(super) fn found(patterns: &Patterns<'_>, op: BinaryOp, left: ValueId, right: ValueId) -> Option<Found> {
    let root = match op {
        BinaryOp::Mul => [(left, false), (right, false)],
        BinaryOp::Div => [(left, false), (right, true)],
        _ => return None,
    };
    // a factor that is a function of some x, and then the rest of the product must be that x and a number
    let mut functions = Vec::new();
    collect(patterns, &root, DEPTH, &mut functions);
    functions.into_iter().find_map(|(factor, x, of_function)| {
        let mut product = Product { x, factor, number: 1.0, x_count: 0, factor_count: 0 };
        for (value, inverse) in root {
            product.multiply(patterns, value, inverse, DEPTH)?;
        }
        let activation = of_function(product.number)?;
        let once = product.x_count == 1 && product.factor_count == 1;
        let same = patterns.graph.tensor(x).dims == patterns.graph.tensor(factor).dims;
        (once && same).then(|| Found { op: Op::Activation(activation), inputs: vec![x] })
    })
}

/// From the product's number to the activation, if it is one.
type OfNumber = Box<dyn Fn(f32) -> Option<Activation>>;

fn collect(
    patterns: &Patterns<'_>,
    factors: &[(ValueId, bool)],
    depth: usize,
    found: &mut Vec<(ValueId, ValueId, OfNumber)>,
) {
    for &(value, inverse) in factors.iter().filter(|(_, inverse)| !inverse) {
        if let Some((x, of_number)) = function(patterns, value) {
            found.push((value, x, of_number));
        }
        if depth > 0
            && let Some((left, right)) = patterns.operands(value, BinaryOp::Mul)
        {
            collect(patterns, &[(left, inverse), (right, inverse)], depth - 1, found);
        } else if depth > 0
            && let Some((left, _)) = patterns.operands(value, BinaryOp::Div)
        {
            collect(patterns, &[(left, inverse)], depth - 1, found);
        }
    }
}

/// The x that `value` is a known function of.
fn function(patterns: &Patterns<'_>, value: ValueId) -> Option<(ValueId, OfNumber)> {
    if let Some((Op::Activation(activation), &[x])) = patterns.operation(value) {
        return match *activation {
            Activation::Sigmoid => Some(swish(patterns, x)),
            Activation::HardSigmoid { alpha, beta } if close(alpha, 1.0 / 6.0) && close(beta, 0.5) => {
                Some((x, Box::new(|number| (number == 1.0).then_some(Activation::HardSwish))))
            }
            Activation::Clip { min: 0.0, max: 6.0 } => match patterns.plus_number(x)? {
                (x, 3.0) => Some((x, Box::new(|number| close(number, 1.0 / 6.0).then_some(Activation::HardSwish)))),
                _ => None,
            },
            _ => None,
        };
    }
    let (inner, 1.0) = patterns.plus_number(value)? else { return None };
    if let Some(argument) = patterns.argument(inner, Function::Erf) {
        let (x, number) = scaled(patterns, argument)?;
        let is_gelu = close(number, std::f32::consts::FRAC_1_SQRT_2);
        return is_gelu.then(|| (x, half_of(Activation::Gelu)));
    }
    match patterns.operation(inner)? {
        (Op::Activation(Activation::Tanh), [argument]) => {
            let x = cubic(patterns, *argument)?;
            Some((x, half_of(Activation::GeluTanh)))
        }
        _ => None,
    }
}

fn half_of(activation: Activation) -> OfNumber {
    Box::new(move |number| close(number, 0.5).then_some(activation))
}

/// x sigmoid(alpha x), where alpha may be 1.
fn swish(patterns: &Patterns<'_>, argument: ValueId) -> (ValueId, OfNumber) {
    let (x, alpha) = scaled(patterns, argument).unwrap_or((argument, 1.0));
    (x, Box::new(move |number| (number == 1.0).then_some(Activation::Swish { alpha })))
}

/// The tensor and the number whose product or quotient `value` is.
fn scaled(patterns: &Patterns<'_>, value: ValueId) -> Option<(ValueId, f32)> {
    if let Some((left, right)) = patterns.operands(value, BinaryOp::Mul) {
        let right_number = patterns.number(right).map(|number| (left, number));
        return right_number.or_else(|| patterns.number(left).map(|number| (right, number)));
    }
    let (left, right) = patterns.operands(value, BinaryOp::Div)?;
    patterns.number(right).map(|number| (left, 1.0 / number))
}

/// The x of sqrt(2 / pi) (x + 0.044715 x^3).
fn cubic(patterns: &Patterns<'_>, value: ValueId) -> Option<ValueId> {
    let (sum, number) = scaled(patterns, value)?;
    let (left, right) = patterns.operands(sum, BinaryOp::Add)?;
    let is_cube = |x: ValueId, cube: ValueId| {
        let mut product = Product { x, factor: x, number: 1.0, x_count: 0, factor_count: 0 };
        let whole = product.multiply(patterns, cube, false, DEPTH).is_some();
        whole && product.x_count == 3 && close(product.number, 0.044_715)
    };
    if !close(number, (2.0 * std::f32::consts::FRAC_1_PI).sqrt()) {
        return None;
    }
    [(left, right), (right, left)].into_iter().find(|(x, cube)| is_cube(*x, *cube)).map(|(x, _)| x)
}

/// A product being taken apart: how often it holds x and the function of x, and the number that is left.
struct Product {
    x: ValueId,
    factor: ValueId,
    number: f32,
    x_count: usize,
    factor_count: usize,
}

impl Product {
    /// Takes `value` apart, which is multiplied, or with `inverse` divided by. `None` when it holds anything else.
    fn multiply(&mut self, patterns: &Patterns<'_>, value: ValueId, inverse: bool, depth: usize) -> Option<()> {
        if let Some(number) = patterns.number(value) {
            self.number = if inverse { self.number / number } else { self.number * number };
            return Some(());
        }
        if value == self.x && !inverse {
            self.x_count += 1;
            return Some(());
        }
        if value == self.factor && !inverse {
            self.factor_count += 1;
            return Some(());
        }
        let depth = depth.checked_sub(1)?;
        if let Some((left, right)) = patterns.operands(value, BinaryOp::Mul) {
            self.multiply(patterns, left, inverse, depth)?;
            return self.multiply(patterns, right, inverse, depth);
        }
        let (left, right) = patterns.operands(value, BinaryOp::Div)?;
        self.multiply(patterns, left, inverse, depth)?;
        self.multiply(patterns, right, !inverse, depth)
    }
}
