//! Softmax against the definition along any axis.

use half::f16;
use insula_kernels::softmax::{softmax, softmax_scratch_bytes};
use insula_kernels::{Floats, FloatsMut, Isa, Strip};
use proptest::prelude::*;

use crate::numbers::{bits, halves, instruction_sets, scratch, values};

fn run(isa: Isa, strip: Strip, slices: usize, input: &[f32]) -> Vec<f32> {
    run_as(isa, false, strip, slices, input)
}

fn run_as(isa: Isa, logarithm: bool, strip: Strip, slices: usize, input: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; input.len()];
    let mut scratch = scratch(softmax_scratch_bytes(strip));
    softmax(
        isa,
        logarithm,
        strip,
        0..slices,
        Floats::F32(input),
        FloatsMut::F32(&mut out),
        bytemuck::cast_slice_mut(&mut scratch),
    );
    out
}

proptest! {
    #[test]
    fn any_softmax_agrees_with_the_definition(slices in 1usize..4, axis in 1usize..70, inner in prop_oneof![Just(1usize), 2usize..70], scale in 0.1f32..60.0) {
        let strip = Strip { axis, inner };
        let input: Vec<f32> = values(slices * axis * inner, axis as u64).iter().map(|x| f16::from_f32(x * scale).to_f32()).collect();
        for isa in instruction_sets() {
            let found = run(isa, strip, slices, &input);
            for (index, found) in found.iter().enumerate() {
                let (slice, column) = (index / (axis * inner), index % inner);
                let along = (0..axis).map(|k| f64::from(input[(slice * axis + k) * inner + column]));
                let max = along.clone().fold(f64::NEG_INFINITY, f64::max);
                let exact = (f64::from(input[index]) - max).exp() / along.map(|x| (x - max).exp()).sum::<f64>();
                let bound = exact * (axis as f64 + 12.0) * f64::from(f32::EPSILON) + 1e-44;
                prop_assert!((f64::from(*found) - exact).abs() <= bound, "{} for {}", found, exact);
            }
            let logarithms = run_as(isa, true, strip, slices, &input);
            for (index, found) in logarithms.iter().enumerate() {
                let (slice, column) = (index / (axis * inner), index % inner);
                let along = (0..axis).map(|k| f64::from(input[(slice * axis + k) * inner + column]));
                let max = along.clone().fold(f64::NEG_INFINITY, f64::max);
                let exact = f64::from(input[index]) - max - along.map(|x| (x - max).exp()).sum::<f64>().ln();
                prop_assert!((f64::from(*found) - exact).abs() <= exact.abs() * 4e-7 + 1e-5, "{} for {}", found, exact);
            }
            let mut stored = vec![f16::ZERO; input.len()];
            let mut scratch = scratch(softmax_scratch_bytes(strip));
            let scratch = bytemuck::cast_slice_mut(&mut scratch);
            softmax(isa, false, strip, 0..slices, Floats::F16(&halves(&input)), FloatsMut::F16(&mut stored), scratch);
            prop_assert_eq!(stored, halves(&found));
        }
    }
}

#[test]
fn a_slice_gives_the_same_bits_alone() {
    for (axis, inner) in [(10, 1), (37, 1), (5, 6), (5, 40)] {
        let strip = Strip { axis, inner };
        let input = values(9 * axis * inner, 3);
        let all = bits(&run(Isa::detect(), strip, 9, &input));
        for (slice, expected) in all.chunks(axis * inner).enumerate() {
            let alone = run(Isa::detect(), strip, 1, &input[slice * axis * inner..(slice + 1) * axis * inner]);
            assert_eq!(bits(&alone), expected);
        }
    }
}

#[test]
fn large_values_do_not_overflow() {
    let found = run(Isa::detect(), Strip { axis: 3, inner: 1 }, 1, &[3e38, 3e38, -3e38]);
    assert_eq!(found, [0.5, 0.5, 0.0]);
}

#[test]
fn nan_stays_in_its_slice() {
    let found = run(Isa::detect(), Strip { axis: 2, inner: 1 }, 2, &[f32::NAN, 1.0, 2.0, 2.0]);
    assert!(found[0].is_nan() && found[1].is_nan());
    assert_eq!(found[2..], [0.5, 0.5]);
}
