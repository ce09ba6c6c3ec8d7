//! Convolutions against the definition, in halves against floats, and pixels against themselves in other batches.

use half::f16;
use insula_kernels::conv::{Conv, ConvShape, ConvWeights, conv_scratch_bytes};
use insula_kernels::gemm::Storage;
use insula_kernels::{Activation, Floats, FloatsMut, Isa, Window};
use proptest::prelude::*;

use crate::numbers::{assert_sums, bits, halves, instruction_sets, scratch, values};

/// A convolution of some images with everything it needs.
#[derive(Debug, Clone)]
struct Case {
    shape: ConvShape,
    images: usize,
    input: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
}

/// How far an output of windows goes along one axis.
fn output(input: usize, kernel: usize, stride: usize, dilation: usize, pads: usize) -> usize {
    (input + pads - ((kernel - 1) * dilation + 1)) / stride + 1
}

impl Case {
    fn new(images: usize, window: Window, channels: usize, filters: usize, groups: usize) -> Case {
        let shape = ConvShape { window, channels, filters, groups };
        let seed = (channels * 13 + filters * 5 + groups) as u64;
        let pixels = images * window.input[0] * window.input[1];
        Case {
            shape,
            images,
            input: values(pixels * channels, seed),
            weights: values(filters * channels / groups * window.taps(), seed + 1),
            bias: values(filters, seed + 2),
            residual: values(window.output_pixels(images) * filters, seed + 3),
        }
    }

    fn rows(&self) -> usize {
        self.shape.window.output_pixels(self.images)
    }

    fn run(&self, isa: Isa, rows: std::ops::Range<usize>) -> Vec<f32> {
        let weights = ConvWeights::pack(&self.shape, Storage::F16, Floats::F32(&self.weights));
        let conv =
            Conv { isa, shape: self.shape, weights: &weights, bias: Some(&self.bias), activation: Activation::None };
        let mut out = vec![7.0; self.residual.len()];
        let mut scratch = scratch(conv_scratch_bytes(&self.shape, self.rows()));
        let (input, residual) = (Floats::F32(&self.input), Some(Floats::F32(&self.residual)));
        conv.run(rows, input, residual, FloatsMut::F32(&mut out), bytemuck::cast_slice_mut(&mut scratch));
        out
    }

    fn run_halves(&self, isa: Isa) -> Vec<f16> {
        let (input, residual, kernel) = (halves(&self.input), halves(&self.residual), halves(&self.weights));
        let weights = ConvWeights::pack(&self.shape, Storage::F16, Floats::F16(&kernel));
        let conv =
            Conv { isa, shape: self.shape, weights: &weights, bias: Some(&self.bias), activation: Activation::None };
        let mut out = vec![f16::ZERO; self.residual.len()];
        let mut scratch = scratch(conv_scratch_bytes(&self.shape, self.rows()));
        let (input, residual) = (Floats::F16(&input), Some(Floats::F16(&residual)));
        conv.run(0..self.rows(), input, residual, FloatsMut::F16(&mut out), bytemuck::cast_slice_mut(&mut scratch));
        out
    }

    /// The definition, with the sums of magnitudes.
    fn exact(&self) -> Vec<(f64, f64)> {
        (0..self.residual.len()).map(|index| self.exact_element(index)).collect()
    }

    fn exact_element(&self, index: usize) -> (f64, f64) {
        let Case { shape: ConvShape { window, channels, filters, groups }, .. } = *self;
        let (filter, pixel) = (index % filters, index / filters);
        let (x, y, image) = (
            pixel % window.output[1],
            pixel / window.output[1] % window.output[0],
            pixel / window.output[0] / window.output[1],
        );
        let (group_channels, group) = (channels / groups, filter / (filters / groups));
        let mut sums = (0.0, 0.0);
        let mut add = |term: f64| sums = (sums.0 + term, sums.1 + term.abs());
        add(f64::from(self.bias[filter]));
        add(f64::from(self.residual[index]));
        for ky in 0..window.kernel[0] {
            for kx in 0..window.kernel[1] {
                let iy = (y * window.strides[0] + ky * window.dilations[0]).wrapping_sub(window.pads[0]);
                let ix = (x * window.strides[1] + kx * window.dilations[1]).wrapping_sub(window.pads[1]);
                if iy >= window.input[0] || ix >= window.input[1] {
                    continue;
                }
                for c in 0..group_channels {
                    let input = self.input[((image * window.input[0] + iy) * window.input[1] + ix) * channels
                        + group * group_channels
                        + c];
                    let weight =
                        self.weights[((filter * group_channels + c) * window.kernel[0] + ky) * window.kernel[1] + kx];
                    add(f64::from(input) * f64::from(weight));
                }
            }
        }
        sums
    }
}

/// Any window with at least one output pixel, padding possibly wider than the image.
fn windows() -> impl Strategy<Value = Window> {
    let axis = || (1usize..9, 1usize..5, 1usize..4, 1usize..4, 0usize..4, 0usize..4);
    (axis(), axis()).prop_filter_map("the window must fit the padded image", |(v, h)| {
        let fits = |a: (usize, usize, usize, usize, usize, usize)| a.0 + a.4 + a.5 > (a.1 - 1) * a.3;
        if !fits(v) || !fits(h) {
            return None;
        }
        Some(Window {
            input: [v.0, h.0],
            output: [output(v.0, v.1, v.2, v.3, v.4 + v.5), output(h.0, h.1, h.2, h.3, h.4 + h.5)],
            kernel: [v.1, h.1],
            strides: [v.2, h.2],
            dilations: [v.3, h.3],
            pads: [v.4, h.4],
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn any_convolution_is_within_the_bound_of_the_definition(
        window in windows(), images in 1usize..3, groups in 1usize..4, channels in 1usize..5, filters in 1usize..5
    ) {
        let case = Case::new(images, window, channels * groups, filters * groups, groups);
        for isa in instruction_sets() {
            let found = case.run(isa, 0..case.rows());
            assert_sums(&found, &case.exact(), window.taps() * channels + 2);
            prop_assert_eq!(case.run_halves(isa), halves(&found));
        }
    }

    #[test]
    fn any_depthwise_convolution_is_within_the_bound_of_the_definition(window in windows(), images in 1usize..3, channels in 2usize..70) {
        let case = Case::new(images, window, channels, channels, channels);
        for isa in instruction_sets() {
            let found = case.run(isa, 0..case.rows());
            assert_sums(&found, &case.exact(), window.taps() + 2);
            prop_assert_eq!(case.run_halves(isa), halves(&found));
        }
    }
}

/// A window of `kernel` by `kernel` with padding that keeps the size.
fn same(size: usize, kernel: usize) -> Window {
    let pads = [kernel / 2; 2];
    Window { input: [size; 2], output: [size; 2], kernel: [kernel; 2], strides: [1; 2], dilations: [1; 2], pads }
}

#[test]
fn deep_convolutions_are_within_the_bound_of_the_definition() {
    for (size, kernel, channels, filters) in [(9, 3, 40, 20), (6, 5, 33, 17), (14, 1, 300, 40), (5, 3, 120, 35)] {
        let case = Case::new(2, same(size, kernel), channels, filters, 1);
        let found = case.run(Isa::detect(), 0..case.rows());
        assert_sums(&found, &case.exact(), kernel * kernel * channels + 2);
    }
}

#[test]
fn a_pixel_gives_the_same_bits_in_any_range_and_any_batch() {
    for (channels, groups) in [(6, 1), (6, 2), (6, 6)] {
        let case = Case::new(7, same(5, 3), channels, 6, groups);
        let all = bits(&case.run(Isa::detect(), 0..case.rows()));
        for images in 1..7 {
            let mut fewer = case.clone();
            fewer.images = images;
            fewer.input.truncate(images * 25 * channels);
            fewer.residual.truncate(images * 25 * 6);
            assert_eq!(bits(&fewer.run(Isa::detect(), 0..images * 25)), all[..images * 25 * 6]);
        }
        for rows in [0..1, 3..50, 77..175] {
            let part = bits(&case.run(Isa::detect(), rows.clone()));
            let elements = rows.start * 6..rows.end * 6;
            assert_eq!(part[elements.clone()], all[elements]);
        }
    }
}
