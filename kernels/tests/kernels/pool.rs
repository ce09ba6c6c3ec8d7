//! Poolings against the definition.

use half::f16;
use insula_kernels::pool::{Divisor, PixelOrder, Pooling, max_positions, pool};
use insula_kernels::{Floats, FloatsMut, Isa, Window};
use proptest::prelude::*;

use crate::numbers::{assert_sums, halves, instruction_sets, values};

/// The pixel, its position and the value of each element of the window of output element `index`.
fn elements(window: &Window, channels: usize, input: &[f32], index: usize) -> Vec<([usize; 3], f32)> {
    let (channel, pixel) = (index % channels, index / channels);
    let [depth, height, width] = window.output;
    let at = [pixel / width / height % depth, pixel / width % height, pixel % width];
    let image = pixel / width / height / depth;
    let mut found = Vec::new();
    for tap in 0..window.taps() {
        let [_, height, width] = window.kernel;
        let tap = [tap / width / height, tap / width % height, tap % width];
        let along: [usize; 3] = std::array::from_fn(|axis| {
            (at[axis] * window.strides[axis] + tap[axis] * window.dilations[axis]).wrapping_sub(window.pads[axis])
        });
        let [z, y, x] = along;
        if (0..3).all(|axis| along[axis] < window.input[axis]) {
            let pixel = ((image * window.input[0] + z) * window.input[1] + y) * window.input[2] + x;
            found.push((along, input[pixel * channels + channel]));
        }
    }
    found
}

/// Windows that each hold a pixel of the image: padding smaller than the kernel, and no step beyond the image.
fn windows() -> impl Strategy<Value = Window> {
    let axis = |most: usize| {
        (1..=most, 1usize..4, 1usize..4, 1usize..3).prop_flat_map(|(input, kernel, stride, dilation)| {
            (Just((input, kernel, stride, dilation)), 0..kernel, 0..kernel)
        })
    };
    (axis(3), axis(8), axis(8)).prop_filter_map("each window must hold a pixel", |axes| {
        let axes = [axes.0, axes.1, axes.2];
        let mut outputs = [0; 3];
        for (output, ((input, kernel, stride, dilation), before, after)) in outputs.iter_mut().zip(axes) {
            let reach = (kernel - 1) * dilation + 1;
            *output = (input + before + after).checked_sub(reach)? / stride + 1;
            let holds = |o: usize| (0..kernel).any(|tap| (o * stride + tap * dilation).wrapping_sub(before) < input);
            if !(0..*output).all(holds) {
                return None;
            }
        }
        Some(Window {
            input: axes.map(|a| a.0.0),
            output: outputs,
            kernel: axes.map(|a| a.0.1),
            strides: axes.map(|a| a.0.2),
            dilations: axes.map(|a| a.0.3),
            pads: axes.map(|a| a.1),
        })
    })
}

fn run(isa: Isa, pooling: Pooling, window: &Window, channels: usize, images: usize, input: &[f32]) -> Vec<f32> {
    let rows = window.output_pixels(images);
    let mut out = vec![0.0; rows * channels];
    pool(isa, pooling, window, channels, 0..rows, Floats::F32(input), FloatsMut::F32(&mut out));
    out
}

proptest! {
    #[test]
    fn poolings_agree_with_the_definition(window in windows(), images in 1usize..3, channels in 1usize..70, include: bool, p in 1i32..4) {
        let input = values(images * window.input.iter().product::<usize>() * channels, channels as u64);
        // All of the window counts when the padding behind the image reaches to its last tap.
        let divisor = if include { Divisor::Padded { after: [1000; 3] } } else { Divisor::Inside };
        for isa in instruction_sets() {
            let max = run(isa, Pooling::Max, &window, channels, images, &input);
            let average = run(isa, Pooling::Average(divisor), &window, channels, images, &input);
            let norm = run(isa, Pooling::Norm { p }, &window, channels, images, &input);
            let mut exact = Vec::new();
            for (index, max) in max.iter().enumerate() {
                let elements: Vec<f32> = elements(&window, channels, &input, index).iter().map(|found| found.1).collect();
                prop_assert_eq!(*max, elements.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                let count = if include { window.taps() } else { elements.len() } as f64;
                let sum: f64 = elements.iter().map(|x| f64::from(*x)).sum();
                let magnitude: f64 = elements.iter().map(|x| f64::from(x.abs())).sum();
                exact.push((sum / count, magnitude / count));
                let powers: f64 = elements.iter().map(|x| f64::from(x.abs()).powi(p)).sum();
                let root = powers.powf(1.0 / f64::from(p));
                prop_assert!((f64::from(norm[index]) - root).abs() <= 1e-5 * root);
            }
            assert_sums(&average, &exact, window.taps() + 1);
            let mut stored = vec![f16::ZERO; average.len()];
            let input = halves(&input);
            let rows = window.output_pixels(images);
            let (from, to) = (Floats::F16(&input), FloatsMut::F16(&mut stored));
            pool(isa, Pooling::Average(divisor), &window, channels, 0..rows, from, to);
            prop_assert_eq!(stored, halves(&average));
        }
    }

    #[test]
    fn the_largest_lies_where_the_position_says(window in windows(), images in 1usize..3, channels in 1usize..4, column_major: bool) {
        let input = values(images * window.input.iter().product::<usize>() * channels, channels as u64);
        let order = if column_major { PixelOrder::ColumnMajor } else { PixelOrder::RowMajor };
        let rows = window.output_pixels(images);
        let mut found = vec![-1; rows * channels];
        max_positions(&window, order, channels, 0..rows, Floats::F32(&input), &mut found);
        let max = run(Isa::detect(), Pooling::Max, &window, channels, images, &input);
        let [depth, height, width] = window.input;
        for (index, position) in found.iter().enumerate() {
            let image = index / channels / window.output_pixels(1);
            let pixel = *position as usize % (depth * height * width);
            let channel = *position as usize / (depth * height * width);
            prop_assert_eq!(channel, image * channels + index % channels);
            let (first, _) = *elements(&window, channels, &input, index).iter().find(|found| found.1 == max[index]).unwrap();
            let [z, y, x] = first;
            let expected = if column_major { (x * height + y) * depth + z } else { (z * height + y) * width + x };
            prop_assert_eq!(pixel, expected);
        }
    }
}

/// A window of 3 pixels over a line of 4, two apart, with one pixel of padding in front.
fn line() -> Window {
    Window {
        input: [1, 1, 4],
        output: [1, 1, 3],
        kernel: [1, 1, 3],
        strides: [1, 1, 2],
        dilations: [1; 3],
        pads: [0, 0, 1],
    }
}

#[test]
fn nan_is_the_largest_and_padding_never() {
    let found = run(Isa::detect(), Pooling::Max, &line(), 1, 1, &[-5.0, -3.0, f32::NAN, f32::NEG_INFINITY]);
    assert_eq!(found[0], -3.0);
    assert!(found[1].is_nan());
}

#[test]
fn padding_counts_as_far_as_it_goes() {
    let divisor = Divisor::Padded { after: [0; 3] };
    let found = run(Isa::detect(), Pooling::Average(divisor), &line(), 1, 1, &[1.0, 2.0, 3.0, 6.0]);
    assert_eq!(found, [1.0, 11.0 / 3.0, 6.0]);
}
