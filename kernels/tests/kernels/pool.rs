//! Poolings against the definition.

use half::f16;
use insula_kernels::pool::{Pooling, pool};
use insula_kernels::{Floats, FloatsMut, Isa, Window};
use proptest::prelude::*;

use crate::numbers::{assert_sums, halves, instruction_sets, values};

/// The elements of the window of output element `index`.
fn elements(window: &Window, channels: usize, input: &[f32], index: usize) -> Vec<f32> {
    let (channel, pixel) = (index % channels, index / channels);
    let (x, y, image) = (
        pixel % window.output[1],
        pixel / window.output[1] % window.output[0],
        pixel / window.output[0] / window.output[1],
    );
    let mut found = Vec::new();
    for ky in 0..window.kernel[0] {
        for kx in 0..window.kernel[1] {
            let iy = (y * window.strides[0] + ky * window.dilations[0]).wrapping_sub(window.pads[0]);
            let ix = (x * window.strides[1] + kx * window.dilations[1]).wrapping_sub(window.pads[1]);
            if iy < window.input[0] && ix < window.input[1] {
                found.push(input[((image * window.input[0] + iy) * window.input[1] + ix) * channels + channel]);
            }
        }
    }
    found
}

/// Windows that each hold a pixel of the image: padding smaller than the kernel, and no step beyond the image.
fn windows() -> impl Strategy<Value = Window> {
    let axis = || {
        (1usize..9, 1usize..4, 1usize..4, 1usize..3).prop_flat_map(|(input, kernel, stride, dilation)| {
            (Just((input, kernel, stride, dilation)), 0..kernel, 0..kernel)
        })
    };
    (axis(), axis()).prop_filter_map("each window must hold a pixel", |(v, h)| {
        let output =
            |((input, kernel, stride, dilation), before, after): ((usize, usize, usize, usize), usize, usize)| {
                let reach = (kernel - 1) * dilation + 1;
                let output = (input + before + after).checked_sub(reach)? / stride + 1;
                let holds =
                    |o: usize| (0..kernel).any(|tap| (o * stride + tap * dilation).wrapping_sub(before) < input);
                (0..output).all(holds).then_some(output)
            };
        let (v_out, h_out) = (output(v)?, output(h)?);
        Some(Window {
            input: [v.0.0, h.0.0],
            output: [v_out, h_out],
            kernel: [v.0.1, h.0.1],
            strides: [v.0.2, h.0.2],
            dilations: [v.0.3, h.0.3],
            pads: [v.1, h.1],
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
    fn poolings_agree_with_the_definition(window in windows(), images in 1usize..3, channels in 1usize..70, include: bool) {
        let input = values(images * window.input[0] * window.input[1] * channels, channels as u64);
        for isa in instruction_sets() {
            let max = run(isa, Pooling::Max, &window, channels, images, &input);
            let average = run(isa, Pooling::Average { count_include_pad: include }, &window, channels, images, &input);
            let mut exact = Vec::new();
            for (index, max) in max.iter().enumerate() {
                let elements = elements(&window, channels, &input, index);
                prop_assert_eq!(*max, elements.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                let count = if include { window.taps() } else { elements.len() } as f64;
                let sum: f64 = elements.iter().map(|x| f64::from(*x)).sum();
                let magnitude: f64 = elements.iter().map(|x| f64::from(x.abs())).sum();
                exact.push((sum / count, magnitude / count));
            }
            assert_sums(&average, &exact, window.taps() + 1);
            let mut stored = vec![f16::ZERO; average.len()];
            let input = halves(&input);
            let pooling = Pooling::Average { count_include_pad: include };
            let rows = window.output_pixels(images);
            pool(isa, pooling, &window, channels, 0..rows, Floats::F16(&input), FloatsMut::F16(&mut stored));
            prop_assert_eq!(stored, halves(&average));
        }
    }
}

#[test]
fn nan_is_the_largest_and_padding_never() {
    let window =
        Window { input: [1, 4], output: [1, 3], kernel: [1, 3], strides: [1, 2], dilations: [1, 1], pads: [0, 1] };
    let found = run(Isa::detect(), Pooling::Max, &window, 1, 1, &[-5.0, -3.0, f32::NAN, f32::NEG_INFINITY]);
    assert_eq!(found[0], -3.0);
    assert!(found[1].is_nan());
}
