//! Matrix products against a sum in double precision, against the portable twin, and against themselves at other heights.

use half::f16;
use insula_kernels::gemm::{Destination, Gemm, MatrixRows, PackedWeights, Storage, gemm_scratch_bytes};
use insula_kernels::{Activation, Floats, FloatsMut, Isa};
use proptest::prelude::*;

use crate::numbers::{assert_sums, bits, halves, instruction_sets, scratch, values};

/// One product with everything it needs.
struct Case {
    rows: usize,
    depth: usize,
    columns: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
}

impl Case {
    fn new(rows: usize, depth: usize, columns: usize) -> Case {
        let seed = (rows * 31 + depth * 7 + columns) as u64;
        Case {
            rows,
            depth,
            columns,
            a: values(rows * depth, seed),
            b: values(depth * columns, seed + 1),
            bias: values(columns, seed + 2),
            residual: values(rows * columns, seed + 3),
        }
    }

    fn weights(&self, storage: Storage) -> PackedWeights {
        PackedWeights::pack(storage, self.depth, self.columns, |k, n| self.b[k * self.columns + n])
    }

    /// Computes `rows` of the product from floats to floats and returns the whole destination.
    fn run(&self, isa: Isa, storage: Storage, activation: Activation, rows: std::ops::Range<usize>) -> Vec<f32> {
        let weights = self.weights(storage);
        let gemm = Gemm { isa, panels: weights.panels(), bias: Some(&self.bias), activation };
        let source = MatrixRows { isa, values: Floats::F32(&self.a), row_stride: self.depth, depth_stride: 1 };
        let mut out = vec![7.0; self.rows * self.columns];
        let mut scratch = scratch(gemm_scratch_bytes(rows.len(), self.depth, self.columns));
        let offset = rows.start * self.columns;
        let to = Destination { values: FloatsMut::F32(&mut out), stride: self.columns, offset };
        gemm.run(rows, &source, Some(Floats::F32(&self.residual)), to, bytemuck::cast_slice_mut(&mut scratch));
        out
    }

    /// The exact sums with the sums of their terms' magnitudes.
    fn exact(&self) -> Vec<(f64, f64)> {
        let element = |index: usize| {
            let (row, column) = (index / self.columns, index % self.columns);
            let term =
                |k: usize| f64::from(self.a[row * self.depth + k]) * f64::from(self.b[k * self.columns + column]);
            let ends = [f64::from(self.bias[column]), f64::from(self.residual[index])];
            let terms = (0..self.depth).map(term).chain(ends);
            terms.fold((0.0, 0.0), |(sum, magnitude), term| (sum + term, magnitude + term.abs()))
        };
        (0..self.rows * self.columns).map(element).collect()
    }

    fn assert_within_bound(&self, found: &[f32]) {
        assert_sums(found, &self.exact(), self.depth + 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_product_is_within_the_bound_of_the_exact_sum(rows in 1usize..50, depth in 0usize..90, columns in 1usize..70, halves: bool) {
        let case = Case::new(rows, depth, columns);
        let storage = if halves { Storage::F16 } else { Storage::F32 };
        for isa in instruction_sets() {
            case.assert_within_bound(&case.run(isa, storage, Activation::None, 0..rows));
        }
    }
}

#[test]
fn products_beyond_every_block_are_within_the_bound() {
    for (rows, depth, columns) in
        [(400, 130, 40), (400, 300, 20), (200, 700, 33), (7, 2000, 17), (3, 9000, 5), (70, 600, 1100)]
    {
        let case = Case::new(rows, depth, columns);
        for storage in [Storage::F16, Storage::F32] {
            case.assert_within_bound(&case.run(Isa::detect(), storage, Activation::None, 0..rows));
        }
    }
}

#[test]
fn a_row_gives_the_same_bits_in_a_product_of_any_height() {
    for (depth, columns) in [(9, 16), (64, 10), (300, 40), (700, 33)] {
        for storage in [Storage::F16, Storage::F32] {
            for isa in instruction_sets() {
                let whole = Case::new(40, depth, columns);
                let all = bits(&whole.run(isa, storage, Activation::Sigmoid, 0..40));
                for rows in 1..40 {
                    for first in [0, 40 - rows] {
                        let part = bits(&whole.run(isa, storage, Activation::Sigmoid, first..first + rows));
                        let range = first * columns..(first + rows) * columns;
                        assert_eq!(part[range.clone()], all[range], "{rows} rows from {first}, {depth}x{columns}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_outside_the_range_are_left_alone() {
    let case = Case::new(20, 30, 20);
    let found = case.run(Isa::detect(), Storage::F16, Activation::None, 5..12);
    assert!(found[..5 * 20].iter().chain(&found[12 * 20..]).all(|&x| x == 7.0));
}

#[test]
fn activations_follow_the_residual() {
    let case = Case::new(13, 20, 21);
    let plain = case.run(Isa::detect(), Storage::F32, Activation::None, 0..13);
    let relu = case.run(Isa::detect(), Storage::F32, Activation::Relu, 0..13);
    let clip = case.run(Isa::detect(), Storage::F32, Activation::Clip { min: -0.5, max: 0.5 }, 0..13);
    let tanh = case.run(Isa::detect(), Storage::F32, Activation::Tanh, 0..13);
    for (index, x) in plain.iter().enumerate() {
        assert_eq!(relu[index], x.max(0.0));
        assert_eq!(clip[index], x.clamp(-0.5, 0.5));
        assert!((tanh[index] - x.tanh()).abs() <= 3e-7);
    }
}

#[test]
fn halves_are_stored_rounded_to_nearest_even() {
    let case = Case::new(14, 50, 35);
    for isa in instruction_sets() {
        let floats = case.run(isa, Storage::F16, Activation::Relu, 0..14);
        let weights = case.weights(Storage::F16);
        let gemm = Gemm { isa, panels: weights.panels(), bias: Some(&case.bias), activation: Activation::Relu };
        let (a, residual) = (halves(&case.a), halves(&case.residual));
        let source = MatrixRows { isa, values: Floats::F16(&a), row_stride: 50, depth_stride: 1 };
        let mut out = vec![f16::ZERO; 14 * 35];
        let mut scratch = scratch(gemm_scratch_bytes(14, 50, 35));
        let to = Destination { values: FloatsMut::F16(&mut out), stride: 35, offset: 0 };
        gemm.run(0..14, &source, Some(Floats::F16(&residual)), to, bytemuck::cast_slice_mut(&mut scratch));
        assert_eq!(out, halves(&floats));
    }
}

#[test]
fn a_transposed_matrix_is_read_by_its_strides() {
    let case = Case::new(9, 11, 5);
    let direct = case.run(Isa::detect(), Storage::F32, Activation::None, 0..9);
    let mut transposed = vec![0.0; 9 * 11];
    for row in 0..9 {
        for k in 0..11 {
            transposed[k * 9 + row] = case.a[row * 11 + k];
        }
    }
    let isa = Isa::detect();
    let weights = case.weights(Storage::F32);
    let gemm = Gemm { isa, panels: weights.panels(), bias: Some(&case.bias), activation: Activation::None };
    let source = MatrixRows { isa, values: Floats::F32(&transposed), row_stride: 1, depth_stride: 9 };
    let mut out = vec![0.0; 9 * 5];
    let mut scratch = scratch(gemm_scratch_bytes(9, 11, 5));
    let to = Destination { values: FloatsMut::F32(&mut out), stride: 5, offset: 0 };
    gemm.run(0..9, &source, Some(Floats::F32(&case.residual)), to, bytemuck::cast_slice_mut(&mut scratch));
    assert_eq!(out, direct);
}

#[test]
fn infinities_and_nan_reach_the_row_they_belong_to_and_no_other() {
    let mut case = Case::new(8, 20, 18);
    case.a[3 * 20 + 4] = f32::NAN;
    case.a[5 * 20 + 2] = f32::INFINITY;
    let found = case.run(Isa::detect(), Storage::F32, Activation::Relu, 0..8);
    for (index, x) in found.iter().enumerate() {
        match index / 18 {
            3 => assert!(x.is_nan()),
            5 => assert!(!x.is_finite() || *x == 0.0),
            _ => assert!(x.is_finite()),
        }
    }
}
