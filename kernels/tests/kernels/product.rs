//! Plain products against sums that cannot overflow, and integer convolutions against those of floats.

use insula_kernels::conv::{Conv, ConvShape, ConvWeights, conv_scratch_bytes};
use insula_kernels::gemm::Storage;
use insula_kernels::product::{arrange_filters, convolve, product};
use insula_kernels::{Activation, Floats, FloatsMut, Isa, Window};
use proptest::prelude::*;

use crate::numbers::scratch;

proptest! {
    #[test]
    fn integers_wrap_around(rows in 1usize..5, depth in 0usize..7, columns in 1usize..6, seed: u64) {
        let number = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
        let a: Vec<i64> = (0..rows * depth).map(number).collect();
        let b: Vec<i64> = (0..depth * columns).map(|i| number(i + 1000)).collect();
        let mut found = vec![7; rows * columns];
        product(0..rows, (depth, columns), &a, &b, &mut found);
        for (index, found) in found.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let terms = (0..depth).map(|k| i128::from(a[row * depth + k]) * i128::from(b[k * columns + column]));
            prop_assert_eq!(*found, terms.fold(0i128, i128::wrapping_add) as i64);
        }
    }

    #[test]
    fn a_convolution_of_small_integers_is_that_of_floats(
        size in 3usize..7, kernel in 1usize..4, stride in 1usize..3, pad in 0usize..2, groups in 1usize..3, channels in 1usize..4, filters in 1usize..4
    ) {
        let output = (size + 2 * pad - kernel) / stride + 1;
        let window = Window {
            input: [1, size, size],
            output: [1, output, output],
            kernel: [1, kernel, kernel],
            strides: [1, stride, stride],
            dilations: [1; 3],
            pads: [0, pad, pad],
        };
        let shape = ConvShape { window, channels: channels * groups, filters: filters * groups, groups };
        let input: Vec<i32> = (0..2 * size * size * shape.channels).map(|i| (i * 37 % 255) as i32 - 128).collect();
        let weights: Vec<i32> = (0..shape.filters * channels * window.taps()).map(|i| (i * 59 % 255) as i32 - 128).collect();
        let rows = window.output_pixels(2);
        let (mut arranged, mut found) = (vec![0; weights.len()], vec![7; rows * shape.filters]);
        arrange_filters(&shape, &weights, &mut arranged);
        convolve(&shape, 0..rows, &input, &arranged, &mut found);
        let floats = |values: &[i32]| values.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (input, weights) = (floats(&input), floats(&weights));
        let packed = ConvWeights::pack(&shape, Storage::F32, Floats::F32(&weights));
        let isa = Isa::detect();
        let conv = Conv { isa, shape, weights: packed.filters(), bias: None, activation: Activation::None };
        let mut expected = vec![0.0; found.len()];
        let mut scratch = scratch(conv_scratch_bytes(&shape, rows));
        let to = FloatsMut::F32(&mut expected);
        conv.run(0..rows, Floats::F32(&input), None, to, bytemuck::cast_slice_mut(&mut scratch));
        prop_assert_eq!(floats(&found), expected);
    }
}
