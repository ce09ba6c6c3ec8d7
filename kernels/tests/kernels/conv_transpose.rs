//! Transposed convolutions against the definition: every input pixel scattered through the window.

use half::f16;
use insula_kernels::conv_transpose::{
    ConvTranspose, ConvTransposeFilters, ConvTransposeShape, ConvTransposeWeights, conv_transpose_filter_floats,
    conv_transpose_scratch_bytes,
};
use insula_kernels::gemm::Storage;
use insula_kernels::{Activation, Floats, FloatsMut, Isa, Window};
use proptest::prelude::*;

use crate::numbers::{assert_sums, bits, halves, instruction_sets, scratch, values};

#[derive(Debug, Clone)]
struct Case {
    shape: ConvTransposeShape,
    images: usize,
    input: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Case {
    fn new(images: usize, window: Window, channels: usize, filters: usize, groups: usize) -> Case {
        let shape = ConvTransposeShape { window, channels, filters, groups };
        let seed = (channels * 17 + filters * 3 + groups) as u64;
        let input = values(window.output_pixels(images) * channels, seed);
        let weights = values(channels * filters / groups * window.taps(), seed + 1);
        Case { shape, images, input, weights, bias: values(filters, seed + 2) }
    }

    fn rows(&self) -> usize {
        self.shape.rows(self.images)
    }

    fn conv<'a>(&'a self, isa: Isa, weights: ConvTransposeFilters<'a>) -> ConvTranspose<'a> {
        ConvTranspose { isa, shape: self.shape, weights, bias: Some(&self.bias), activation: Activation::None }
    }

    fn run(&self, isa: Isa, cuts: &[usize]) -> Vec<f32> {
        let weights = ConvTransposeWeights::pack(&self.shape, Storage::F32, Floats::F32(&self.weights));
        let mut out = vec![f32::NAN; self.rows() * self.shape.filters];
        let mut scratch = scratch(conv_transpose_scratch_bytes(&self.shape));
        let mut first = 0;
        for &cut in cuts.iter().filter(|cut| **cut < self.rows()).chain([&self.rows()]) {
            let (input, to) = (Floats::F32(&self.input), FloatsMut::F32(&mut out));
            self.conv(isa, weights.filters()).run(first..cut, input, to, bytemuck::cast_slice_mut(&mut scratch));
            first = cut;
        }
        out
    }

    fn run_packing_halves(&self, isa: Isa) -> Vec<f16> {
        let (input, weights) = (halves(&self.input), halves(&self.weights));
        let mut packed = vec![f32::NAN; conv_transpose_filter_floats(&self.shape)];
        let weights = ConvTransposeFilters::pack(&self.shape, Floats::F16(&weights), &mut packed);
        let mut out = vec![f16::NAN; self.rows() * self.shape.filters];
        let mut scratch = scratch(conv_transpose_scratch_bytes(&self.shape));
        let (input, to) = (Floats::F16(&input), FloatsMut::F16(&mut out));
        self.conv(isa, weights).run(0..self.rows(), input, to, bytemuck::cast_slice_mut(&mut scratch));
        out
    }

    fn exact(&self) -> Vec<(f64, f64)> {
        let Case { shape: ConvTransposeShape { window, channels, filters, groups }, .. } = *self;
        let bias = |index: usize| f64::from(self.bias[index % filters]);
        let mut sums: Vec<(f64, f64)> = (0..self.rows() * filters).map(|i| (bias(i), bias(i).abs())).collect();
        let [_, out_height, out_width] = window.output;
        for pixel in 0..window.output_pixels(self.images) {
            let (image, inside) = (pixel / window.output_pixels(1), pixel % window.output_pixels(1));
            let from = [inside / out_width / out_height, inside / out_width % out_height, inside % out_width];
            for tap in 0..window.taps() {
                let [_, height, width] = window.kernel;
                let at = [tap / width / height, tap / width % height, tap % width];
                let to: [usize; 3] = std::array::from_fn(|axis| {
                    (from[axis] * window.strides[axis] + at[axis] * window.dilations[axis])
                        .wrapping_sub(window.pads[axis])
                });
                if (0..3).any(|axis| to[axis] >= window.input[axis]) {
                    continue;
                }
                let to = ((image * window.input[0] + to[0]) * window.input[1] + to[1]) * window.input[2] + to[2];
                for channel in 0..channels {
                    let group = channel / (channels / groups);
                    for m in 0..filters / groups {
                        let weight = self.weights[(channel * (filters / groups) + m) * window.taps() + tap];
                        let term = f64::from(self.input[pixel * channels + channel]) * f64::from(weight);
                        let sum = &mut sums[to * filters + group * (filters / groups) + m];
                        *sum = (sum.0 + term, sum.1 + term.abs());
                    }
                }
            }
        }
        sums
    }
}

/// Any window; the output may be smaller or larger than what the taps reach.
fn windows() -> impl Strategy<Value = Window> {
    let axis = |most: usize| (1..=most, 1usize..5, 1usize..4, 1usize..4, 0usize..4, 0usize..4);
    (axis(2), axis(5), axis(5)).prop_map(|axes| {
        let axes = [axes.0, axes.1, axes.2];
        let natural = |a: (usize, usize, usize, usize, usize, usize)| (a.0 - 1) * a.2 + (a.1 - 1) * a.3 + 1;
        Window {
            input: axes.map(|a| (natural(a) + a.5).saturating_sub(2 * a.4).max(1)),
            output: axes.map(|a| a.0),
            kernel: axes.map(|a| a.1),
            strides: axes.map(|a| a.2),
            dilations: axes.map(|a| a.3),
            pads: axes.map(|a| a.4),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn any_transposed_convolution_is_within_the_bound_of_the_definition(
        window in windows(), images in 1usize..3, groups in 1usize..3, channels in 1usize..5, filters in 1usize..5, cut in 0usize..200
    ) {
        let case = Case::new(images, window, channels * groups, filters * groups, groups);
        for isa in instruction_sets() {
            let found = case.run(isa, &[]);
            assert_sums(&found, &case.exact(), window.taps() * channels + 2);
            prop_assert_eq!(bits(&case.run(isa, &[cut])), bits(&found));
            prop_assert_eq!(case.run_packing_halves(isa), halves(&found));
        }
    }
}

#[test]
fn a_pixel_gives_the_same_bits_in_any_batch() {
    let window = Window {
        input: [1, 13, 12],
        output: [1, 7, 6],
        kernel: [1, 3, 4],
        strides: [1, 2, 2],
        dilations: [1; 3],
        pads: [0, 1, 1],
    };
    let case = Case::new(9, window, 40, 20, 1);
    let all = case.run(Isa::detect(), &[]);
    assert_sums(&all, &case.exact(), 12 * 40 + 2);
    let mut fewer = case.clone();
    fewer.images = 2;
    fewer.input.truncate(window.output_pixels(2) * 40);
    let found = fewer.run(Isa::detect(), &[]);
    assert_eq!(bits(&found), bits(&all[..found.len()]));
}
