//! Convolutions against the definition, in halves against floats, and pixels against themselves in other batches.

use half::f16;
use insula_kernels::conv::{
    Conv, ConvFilters, ConvShape, ConvWeights, DeformableConv, Deformation, conv_filter_floats, conv_scratch_bytes,
};
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
        let pixels = images * window.input.iter().product::<usize>();
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
        let conv = Conv {
            isa,
            shape: self.shape,
            weights: weights.filters(),
            bias: Some(&self.bias),
            activation: Activation::None,
        };
        let mut out = vec![7.0; self.residual.len()];
        let mut scratch = scratch(conv_scratch_bytes(&self.shape, self.rows()));
        let part = rows.start * self.shape.filters..rows.end * self.shape.filters;
        let (input, residual) = (Floats::F32(&self.input), Some(Floats::F32(&self.residual[part.clone()])));
        conv.run(rows, input, residual, FloatsMut::F32(&mut out[part]), bytemuck::cast_slice_mut(&mut scratch));
        out
    }

    /// With weights that become known during the run.
    fn run_packing(&self, isa: Isa) -> Vec<f32> {
        let mut packed = vec![f32::NAN; conv_filter_floats(&self.shape)];
        let weights = ConvFilters::pack(&self.shape, Floats::F32(&self.weights), &mut packed);
        let conv = Conv { isa, shape: self.shape, weights, bias: Some(&self.bias), activation: Activation::None };
        let mut out = vec![7.0; self.residual.len()];
        let mut scratch = scratch(conv_scratch_bytes(&self.shape, self.rows()));
        let (input, residual) = (Floats::F32(&self.input), Some(Floats::F32(&self.residual)));
        conv.run(0..self.rows(), input, residual, FloatsMut::F32(&mut out), bytemuck::cast_slice_mut(&mut scratch));
        out
    }

    fn run_halves(&self, isa: Isa) -> Vec<f16> {
        let (input, residual, kernel) = (halves(&self.input), halves(&self.residual), halves(&self.weights));
        let weights = ConvWeights::pack(&self.shape, Storage::F16, Floats::F16(&kernel));
        let conv = Conv {
            isa,
            shape: self.shape,
            weights: weights.filters(),
            bias: Some(&self.bias),
            activation: Activation::None,
        };
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
        let (image, at) = place(&window, pixel);
        let (group_channels, group) = (channels / groups, filter / (filters / groups));
        let mut sums = (0.0, 0.0);
        let mut add = |term: f64| sums = (sums.0 + term, sums.1 + term.abs());
        add(f64::from(self.bias[filter]));
        add(f64::from(self.residual[index]));
        for tap in 0..window.taps() {
            let Some(position) = position(&window, at, tap) else { continue };
            let position = image * window.input.iter().product::<usize>() + position;
            for c in 0..group_channels {
                let input = self.input[position * channels + group * group_channels + c];
                let weight = self.weights[(filter * group_channels + c) * window.taps() + tap];
                add(f64::from(input) * f64::from(weight));
            }
        }
        sums
    }
}

/// The image and the position along each axis of output pixel number `pixel`.
fn place(window: &Window, pixel: usize) -> (usize, [usize; 3]) {
    let [depth, height, width] = window.output;
    let (plane, x) = (pixel / width, pixel % width);
    let (volume, y) = (plane / height, plane % height);
    (volume / depth, [volume % depth, y, x])
}

/// The pixel of the image that tap number `tap` meets, `None` on padding.
fn position(window: &Window, at: [usize; 3], tap: usize) -> Option<usize> {
    let [_, height, width] = window.kernel;
    let tap = [tap / width / height, tap / width % height, tap % width];
    let mut position = 0;
    for axis in 0..3 {
        let along = at[axis] * window.strides[axis] + tap[axis] * window.dilations[axis];
        let along = along.checked_sub(window.pads[axis]).filter(|along| *along < window.input[axis])?;
        position = position * window.input[axis] + along;
    }
    Some(position)
}

/// Any window with at least one output pixel, padding possibly wider than the image.
fn windows() -> impl Strategy<Value = Window> {
    let axis = |most: usize| (1..=most, 1usize..5, 1usize..4, 1usize..4, 0usize..4, 0usize..4);
    (axis(3), axis(8), axis(8)).prop_filter_map("the window must fit the padded image", |axes| {
        let axes = [axes.0, axes.1, axes.2];
        let fits = |a: &(usize, usize, usize, usize, usize, usize)| a.0 + a.4 + a.5 > (a.1 - 1) * a.3;
        if !axes.iter().all(fits) {
            return None;
        }
        Some(Window {
            input: axes.map(|a| a.0),
            output: axes.map(|a| output(a.0, a.1, a.2, a.3, a.4 + a.5)),
            kernel: axes.map(|a| a.1),
            strides: axes.map(|a| a.2),
            dilations: axes.map(|a| a.3),
            pads: axes.map(|a| a.4),
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
            prop_assert_eq!(bits(&case.run_packing(isa)), bits(&found));
        }
    }

    #[test]
    fn any_depthwise_convolution_is_within_the_bound_of_the_definition(window in windows(), images in 1usize..3, channels in 2usize..70) {
        let case = Case::new(images, window, channels, channels, channels);
        for isa in instruction_sets() {
            let found = case.run(isa, 0..case.rows());
            assert_sums(&found, &case.exact(), window.taps() + 2);
            prop_assert_eq!(case.run_halves(isa), halves(&found));
            prop_assert_eq!(bits(&case.run_packing(isa)), bits(&found));
        }
    }
}

/// A window of `kernel` by `kernel` with padding that keeps the size.
fn same(size: usize, kernel: usize) -> Window {
    let (image, kernel, pads) = ([1, size, size], [1, kernel, kernel], [0, kernel / 2, kernel / 2]);
    Window { input: image, output: image, kernel, strides: [1; 3], dilations: [1; 3], pads }
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

#[test]
fn offsets_of_whole_pixels_read_the_neighbours_and_halves_their_mean() {
    let window = same(6, 3);
    for groups in [1, 2, 4] {
        let case = Case { bias: vec![0.0; 4], residual: vec![0.0; 2 * 36 * 4], ..Case::new(2, window, 4, 4, groups) };
        let mut filters = vec![f32::NAN; DeformableConv::filter_floats(&case.shape)];
        DeformableConv::arrange(&case.shape, Floats::F32(&case.weights), &mut filters);
        let conv = DeformableConv { isa: Isa::detect(), shape: case.shape, offset_groups: 2, filters: &filters };
        let run = |right: f32, scale: f32| {
            let taps = case.rows() * 2 * window.taps();
            let offsets: Vec<f32> = (0..2 * taps).map(|i| if i % 2 == 1 { right } else { 0.0 }).collect();
            let mask = vec![scale; taps];
            let deformation = Deformation { offsets: Floats::F32(&offsets), mask: Some(Floats::F32(&mask)) };
            let mut out = vec![f32::NAN; case.rows() * 4];
            let mut scratch = scratch(conv_scratch_bytes(&same_groups(case.shape), case.rows()));
            let (input, to) = (Floats::F32(&case.input), FloatsMut::F32(&mut out));
            conv.run(0..case.rows(), input, deformation, to, bytemuck::cast_slice_mut(&mut scratch));
            out
        };
        assert_sums(&run(0.0, 1.0), &case.exact(), 40);
        let mut moved = case.clone();
        moved.shape.window.pads[2] = 0;
        moved.shape.window.output[2] = 6;
        let exact = moved.exact();
        assert_sums(&run(1.0, 1.0), &exact, 40);
        let means: Vec<(f64, f64)> =
            exact.iter().zip(case.exact()).map(|(a, b)| (0.25 * (a.0 + b.0), a.1 + b.1)).collect();
        assert_sums(&run(0.5, 0.5), &means, 40);
    }
}

/// The same sizes in one group: enough scratch for any number of them.
fn same_groups(shape: ConvShape) -> ConvShape {
    ConvShape { groups: 1, ..shape }
}
