//! Reductions against the definition over any axes, of any type.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use insula_kernels::reduce::{Reduce, Reduction};
use insula_kernels::{Isa, Number};
use proptest::prelude::*;

use crate::numbers::{assert_sums, halves, instruction_sets, values};

const ALL: [Reduction; 10] = [
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Max,
    Reduction::Min,
    Reduction::Product,
    Reduction::L1,
    Reduction::L2,
    Reduction::LogSum,
    Reduction::LogSumExp,
    Reduction::SumSquare,
];

/// The groups of elements that become one, in the order of the kept axes.
fn groups(shape: &[usize], axes: &[usize], input: &[f32]) -> Vec<Vec<f64>> {
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let count: usize = axes.iter().map(|axis| shape[*axis]).product();
    let mut groups = vec![Vec::new(); input.len() / count];
    for (mut index, x) in input.iter().enumerate() {
        let mut at = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            at[axis] = index % shape[axis];
            index /= shape[axis];
        }
        let to = kept.iter().fold(0, |offset, axis| offset * shape[*axis] + at[*axis]);
        groups[to].push(f64::from(*x));
    }
    groups
}

fn exact(reduction: Reduction, group: &[f64]) -> f64 {
    let sum = |map: fn(f64) -> f64| group.iter().map(|x| map(*x)).sum::<f64>();
    match reduction {
        Reduction::Sum => sum(|x| x),
        Reduction::Mean => sum(|x| x) / group.len() as f64,
        Reduction::Max => group.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Min => group.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Product => group.iter().product(),
        Reduction::L1 => sum(f64::abs),
        Reduction::L2 => sum(|x| x * x).sqrt(),
        Reduction::LogSum => sum(|x| x).ln(),
        Reduction::LogSumExp => sum(f64::exp).ln(),
        Reduction::SumSquare => sum(|x| x * x),
    }
}

fn run<T: Pod>(
    isa: Isa,
    reduction: Reduction,
    number: Number,
    (shape, axes): (&[usize], &[usize]),
    input: &[T],
) -> Vec<T> {
    let reduce = Reduce::new(reduction, shape, axes).unwrap();
    let count: usize = axes.iter().map(|axis| shape[*axis]).product();
    let mut out = vec![input[0]; input.len() / count];
    reduce.run(isa, number, 0..reduce.rows(), cast_slice(input), cast_slice_mut(&mut out));
    out
}

proptest! {
    #[test]
    fn reductions_over_any_axes_agree_with_the_definition(shape in proptest::collection::vec(1usize..7, 1..6), mask in 1u8..32) {
        let axes: Vec<usize> = (0..shape.len()).filter(|axis| mask >> axis & 1 == 1).collect();
        prop_assume!(!axes.is_empty());
        // above 0, so that logarithms of sums and products are far from their edges
        let input: Vec<f32> = values(shape.iter().product(), u64::from(mask)).iter().map(|x| x.abs() / 4.0 + 0.875).collect();
        let groups = groups(&shape, &axes, &input);
        let doubles: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
        let brains: Vec<bf16> = input.iter().map(|x| bf16::from_f32(*x)).collect();
        for reduction in ALL {
            let close = |found: f64, group: &[f64], relative: f64| {
                let exact = exact(reduction, group);
                (found - exact).abs() <= relative * exact.abs().max(1.0)
            };
            for isa in instruction_sets() {
                let found = run(isa, reduction, Number::F32, (&shape, &axes), &input);
                for (found, group) in found.iter().zip(&groups) {
                    prop_assert!(close(f64::from(*found), group, 2e-6), "{:?}: {}", reduction, found);
                }
                let stored = run(isa, reduction, Number::F16, (&shape, &axes), &halves(&input));
                for (found, group) in stored.iter().zip(&groups) {
                    let tolerance = if exact(reduction, group) > 65000.0 { f64::INFINITY } else { 0.002 + group.len() as f64 * 5e-4 };
                    prop_assert!(close(found.to_f64(), group, tolerance), "{:?}: {}", reduction, found);
                }
                let stored = run(isa, reduction, Number::Bf16, (&shape, &axes), &brains);
                prop_assert_eq!(stored.len(), groups.len());
            }
            let found = run(Isa::detect(), reduction, Number::F64, (&shape, &axes), &doubles);
            for (found, group) in found.iter().zip(&groups) {
                prop_assert!(close(*found, group, 1e-13), "{:?}: {}", reduction, found);
            }
        }
    }

    #[test]
    fn integers_are_exact(shape in proptest::collection::vec(1usize..5, 1..5), mask in 1u8..16) {
        let axes: Vec<usize> = (0..shape.len()).filter(|axis| mask >> axis & 1 == 1).collect();
        prop_assume!(!axes.is_empty());
        let input: Vec<f32> = values(shape.iter().product(), u64::from(mask)).iter().map(|x| (x * 3.0).round()).collect();
        let whole: Vec<i64> = input.iter().map(|x| *x as i64).collect();
        let groups = groups(&shape, &axes, &input);
        for reduction in ALL {
            let found = run(Isa::detect(), reduction, Number::I64, (&shape, &axes), &whole);
            for (found, group) in found.iter().zip(&groups) {
                let product_is_exact = group.len() < 30 || reduction != Reduction::Product;
                // what has a fraction may end on the other side of an integer
                let off = matches!(reduction, Reduction::LogSumExp | Reduction::L2 | Reduction::LogSum);
                prop_assert!(!product_is_exact || (*found - exact(reduction, group) as i64).abs() <= i64::from(off), "{:?}", reduction);
            }
        }
    }
}

#[test]
fn long_axes_are_summed_in_pieces() {
    for (shape, axes) in [(vec![2, 100_000], vec![1]), (vec![2, 3000, 70], vec![1]), (vec![3, 500, 2], vec![0, 1])] {
        let input = values(shape.iter().product(), 9);
        let sums: Vec<(f64, f64)> = groups(&shape, &axes, &input)
            .iter()
            .map(|group| (group.iter().sum(), group.iter().map(|x| x.abs()).sum()))
            .collect();
        // far fewer additions one after the other than there are elements
        assert_sums(&run(Isa::detect(), Reduction::Sum, Number::F32, (&shape, &axes), &input), &sums, 120);
    }
}

#[test]
fn squares_that_halves_do_not_hold_have_a_root_that_they_do() {
    let input = [f16::from_f32(3000.0), f16::from_f32(4000.0)];
    let found = run(Isa::detect(), Reduction::L2, Number::F16, (&[2], &[0]), &input);
    assert_eq!(found, [f16::from_f32(5000.0)]);
}

#[test]
fn infinities_and_nan_come_through() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let run = |reduction, input: &[f32]| run(Isa::detect(), reduction, Number::F32, (&[2], &[0]), input)[0];
    assert_eq!(run(Reduction::LogSumExp, &[-infinity, -infinity]), -infinity);
    assert_eq!(run(Reduction::LogSumExp, &[infinity, 1.0]), infinity);
    assert_eq!(run(Reduction::LogSumExp, &[1e4, -1e4]), 1e4);
    assert!(run(Reduction::Max, &[nan, 1.0]).is_nan() && run(Reduction::Min, &[1.0, nan]).is_nan());
    assert_eq!(run(Reduction::LogSum, &[0.0, 0.0]), -infinity);
}

#[test]
fn nothing_folds_to_the_neutral_element() {
    let empty = |reduction| {
        let reduce = Reduce::new(reduction, &[2, 0], &[1]).unwrap();
        let mut out = [7.0f32; 2];
        reduce.run(Isa::detect(), Number::F32, 0..reduce.rows(), cast_slice(&[0f32; 0]), cast_slice_mut(&mut out));
        assert_eq!(out[0], out[1]);
        out[0]
    };
    assert_eq!((empty(Reduction::Sum), empty(Reduction::Product)), (0.0, 1.0));
    assert_eq!((empty(Reduction::Max), empty(Reduction::Min)), (f32::NEG_INFINITY, f32::INFINITY));
}

#[test]
fn axes_that_do_not_exist_are_refused() {
    assert!(Reduce::new(Reduction::Mean, &[2, 3], &[2]).is_none());
    assert!(Reduce::new(Reduction::Mean, &[1; 9], &[0]).is_none());
}
