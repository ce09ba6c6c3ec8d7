//! Layer normalisation against the definition in double precision.

use half::f16;
use insula_kernels::normalise::Normalise;
use insula_kernels::{Floats, FloatsMut, Isa};
use proptest::prelude::*;

use crate::numbers::{bits, halves, instruction_sets, scratch, values};

fn run(normalise: &Normalise<'_>, rows: usize, input: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; input.len()];
    let mut scratch = scratch(Normalise::scratch_bytes(normalise.columns));
    let scratch = bytemuck::cast_slice_mut(&mut scratch);
    normalise.run(0..rows, Floats::F32(input), FloatsMut::F32(&mut out), scratch);
    out
}

proptest! {
    #[test]
    fn rows_are_normalised_as_the_definition_says(rows in 1usize..4, columns in 1usize..700, centred: bool, affine: bool) {
        let input: Vec<f32> = values(rows * columns, columns as u64).iter().map(|x| x * 3.0 + 1.0).collect();
        let (scales, biases) = (values(columns, 5), values(columns, 6));
        let epsilon = 1e-3;
        for isa in instruction_sets() {
            let scale = affine.then_some(Floats::F32(&scales));
            let bias = affine.then_some(Floats::F32(&biases));
            let found = run(&Normalise { isa, columns, centred, epsilon, scale, bias }, rows, &input);
            for (row, found) in input.chunks(columns).zip(found.chunks(columns)) {
                let mean = if centred { row.iter().map(|x| f64::from(*x)).sum::<f64>() / columns as f64 } else { 0.0 };
                let square = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / columns as f64;
                for (column, found) in found.iter().enumerate() {
                    let normal = (f64::from(row[column]) - mean) / (square + f64::from(epsilon)).sqrt();
                    let exact = match affine {
                        true => normal * f64::from(scales[column]) + f64::from(biases[column]),
                        false => normal,
                    };
                    prop_assert!((f64::from(*found) - exact).abs() <= 2e-5, "{} for {}", found, exact);
                }
            }
            let (mut stored, mut space) = (vec![f16::ZERO; input.len()], scratch(Normalise::scratch_bytes(columns)));
            let (scales, biases) = (halves(&scales), halves(&biases));
            let (scale, bias) = (affine.then_some(Floats::F16(&scales)), affine.then_some(Floats::F16(&biases)));
            let normalise = Normalise { isa, columns, centred, epsilon, scale, bias };
            let rounded = halves(&input);
            let space = bytemuck::cast_slice_mut(&mut space);
            normalise.run(0..rows, Floats::F16(&rounded), FloatsMut::F16(&mut stored), space);
            let single: Vec<f32> = rounded.iter().map(|x| x.to_f32()).collect();
            let expected = run(&Normalise { scale: None, bias: None, ..normalise }, rows, &single);
            prop_assert!(affine || stored == halves(&expected));
        }
    }
}

#[test]
fn a_row_gives_the_same_bits_alone() {
    let (columns, input) = (37, values(5 * 37, 3));
    let normalise = Normalise { isa: Isa::detect(), columns, centred: true, epsilon: 1e-5, scale: None, bias: None };
    let all = run(&normalise, 5, &input);
    for (row, expected) in input.chunks(columns).zip(all.chunks(columns)) {
        assert_eq!(bits(&run(&normalise, 1, row)), bits(expected));
    }
}
