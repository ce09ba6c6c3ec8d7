//! Means against the definition over any axes.

use half::f16;
use insula_kernels::reduce::Mean;
use insula_kernels::{Floats, FloatsMut, Isa};
use proptest::prelude::*;

use crate::numbers::{assert_sums, halves, instruction_sets, values};

/// The exact means with those of magnitudes, in the order of the kept axes.
fn exact(shape: &[usize], axes: &[usize], input: &[f32]) -> Vec<(f64, f64)> {
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let count: usize = axes.iter().map(|axis| shape[*axis]).product();
    let mut means = vec![(0.0, 0.0); input.len() / count];
    for (mut index, x) in input.iter().enumerate() {
        let mut at = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            at[axis] = index % shape[axis];
            index /= shape[axis];
        }
        let to = kept.iter().fold(0, |offset, axis| offset * shape[*axis] + at[*axis]);
        means[to].0 += f64::from(*x) / count as f64;
        means[to].1 += f64::from(x.abs()) / count as f64;
    }
    means
}

fn run(isa: Isa, shape: &[usize], axes: &[usize], input: &[f32]) -> Vec<f32> {
    let mean = Mean::new(shape, axes).unwrap();
    let count: usize = axes.iter().map(|axis| shape[*axis]).product();
    let mut out = vec![7.0; input.len() / count];
    mean.run(isa, 0..mean.rows(), Floats::F32(input), FloatsMut::F32(&mut out));
    out
}

proptest! {
    #[test]
    fn means_over_any_axes_agree_with_the_definition(shape in proptest::collection::vec(1usize..7, 1..6), mask in 1u8..32) {
        let axes: Vec<usize> = (0..shape.len()).filter(|axis| mask >> axis & 1 == 1).collect();
        prop_assume!(!axes.is_empty());
        let input = values(shape.iter().product(), u64::from(mask));
        let count: usize = axes.iter().map(|axis| shape[*axis]).product();
        for isa in instruction_sets() {
            let found = run(isa, &shape, &axes, &input);
            assert_sums(&found, &exact(&shape, &axes, &input), count + 1);
            let mean = Mean::new(&shape, &axes).unwrap();
            let mut stored = vec![f16::ZERO; found.len()];
            mean.run(isa, 0..mean.rows(), Floats::F16(&halves(&input)), FloatsMut::F16(&mut stored));
            prop_assert_eq!(stored, halves(&found));
        }
    }
}

#[test]
fn long_axes_are_summed_in_pieces() {
    for (shape, axes) in [(vec![2, 1000], vec![1]), (vec![2, 30, 700], vec![1]), (vec![3, 500, 2], vec![0, 1])] {
        let input = values(shape.iter().product(), 9);
        let count: usize = axes.iter().map(|axis: &usize| shape[*axis]).product();
        assert_sums(&run(Isa::detect(), &shape, &axes, &input), &exact(&shape, &axes, &input), count + 1);
    }
}

#[test]
fn axes_that_do_not_exist_are_refused() {
    assert!(Mean::new(&[2, 3], &[2]).is_none());
    assert!(Mean::new(&[1; 9], &[0]).is_none());
}
