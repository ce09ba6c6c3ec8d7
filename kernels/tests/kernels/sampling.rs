//! Resizing and sampling images, each against its definition in double precision.

use insula_kernels::col2im::{BlockAxis, Col2Im};
use insula_kernels::grid_sample::{Border, GridSample, Sampling};
use insula_kernels::interpolate::{Taps, interpolate};
use insula_kernels::roi_align::{RoiAlign, RoiPooling};
use insula_kernels::{Floats, FloatsMut, Indices, Strip};

use crate::numbers::{gamma, instruction_sets, values};

#[test]
fn an_axis_is_a_weighted_sum_of_its_positions() {
    for inner in [1, 7, 300] {
        let input = values(2 * 3 * inner, 5);
        let mut taps = Taps::new(9.0);
        taps.push([(0, 0.25), (2, 0.75)]);
        taps.push([]);
        taps.push([(1, -0.5), (1, 1.5), (2, 0.1)]);
        let exact = |outer: usize, output: usize, lane: usize| {
            let at = |position: usize| f64::from(input[(outer * 3 + position) * inner + lane]);
            match output {
                0 => 0.25 * at(0) + 0.75 * at(2),
                1 => 9.0,
                _ => at(1) + f64::from(0.1f32) * at(2),
            }
        };
        for isa in instruction_sets() {
            let mut out = vec![f32::NAN; input.len()];
            for lines in [0..4, 4..6] {
                let strip = Strip { axis: 3, inner };
                interpolate(isa, &taps, strip, lines, Floats::F32(&input), FloatsMut::F32(&mut out));
            }
            for (index, found) in out.iter().enumerate() {
                let exact = exact(index / (3 * inner), index / inner % 3, index % inner);
                assert!((f64::from(*found) - exact).abs() <= gamma(3) * 4.0, "{found} for {exact}");
            }
        }
    }
}

fn sampled(sampling: Sampling, border: Border, align_corners: bool, x: f32) -> f32 {
    let input = [1.0f32, 2.0, 4.0, 8.0];
    let sample = GridSample { image: vec![1, 4], channels: 1, pixels: 1, sampling, border, align_corners };
    let grid = [x, 0.0];
    let found: Vec<f32> = instruction_sets()
        .into_iter()
        .map(|isa| {
            let mut out = [f32::NAN];
            sample.run(isa, 0..1, Floats::F32(&input), Floats::F32(&grid), FloatsMut::F32(&mut out));
            out[0]
        })
        .collect();
    let same = found[0].to_bits() == found[1].to_bits() || found.iter().all(|x| x.is_nan());
    assert!(same || (found[0] - found[1]).abs() < 1e-5, "{found:?}");
    found[0]
}

#[test]
fn positions_between_pixels_are_interpolated() {
    assert_eq!(sampled(Sampling::Linear, Border::Zeros, true, -1.0), 1.0);
    assert_eq!(sampled(Sampling::Linear, Border::Zeros, true, 0.0), 3.0);
    assert_eq!(sampled(Sampling::Linear, Border::Zeros, false, 0.25), 4.0);
    assert_eq!(sampled(Sampling::Linear, Border::Zeros, false, -1.0), 0.5, "half of the pixel is outside");
    assert_eq!(sampled(Sampling::Nearest, Border::Zeros, true, 0.9), 8.0);
    let cubic = sampled(Sampling::Cubic, Border::Edge, true, 0.0);
    assert!((cubic - (-0.09375 * 9.0 + 0.59375 * 6.0)).abs() < 1e-6, "{cubic}");
}

#[test]
fn beyond_the_image_the_border_decides() {
    for (border, expected) in [(Border::Zeros, 0.0), (Border::Edge, 8.0), (Border::Reflection, 2.0)] {
        assert_eq!(sampled(Sampling::Linear, border, true, 7.0 / 3.0), expected, "{border:?}");
    }
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN] {
        for border in [Border::Zeros, Border::Edge, Border::Reflection] {
            for sampling in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
                sampled(sampling, border, false, x);
            }
        }
    }
}

#[test]
fn regions_are_pooled_from_their_own_image() {
    // a ramp: the mean of symmetric samples is the value at the bin's centre
    let ramp: Vec<f32> = (0..2 * 6 * 6).map(|at| (at % 6 + 10 * (at / 6 % 6) + 1000 * (at / 36)) as f32).collect();
    let roi = RoiAlign {
        images: 2,
        image: [6, 6],
        channels: 1,
        output: [2, 2],
        pooling: RoiPooling::Average,
        sampling_ratio: 2,
        spatial_scale: 0.5,
        half_pixel: false,
    };
    let regions = [2.0f32, 2.0, 6.0, 6.0];
    for isa in instruction_sets() {
        let mut out = [f32::NAN; 4];
        let run = |index: i64, out: &mut [f32]| {
            roi.run(isa, 0..4, Floats::F32(&ramp), Floats::F32(&regions), Indices::I64(&[index]), FloatsMut::F32(out))
        };
        run(1, &mut out).unwrap();
        let expected = [1016.5, 1017.5, 1026.5, 1027.5];
        assert!(out.iter().zip(expected).all(|(found, exact)| (found - exact).abs() < 1e-3), "{out:?}");
        assert!(run(2, &mut out).is_err());
    }
}

#[test]
fn columns_add_up_where_blocks_overlap() {
    let axis = BlockAxis { image: 4, block: 2, blocks: 3, dilation: 1, stride: 1, pad: 0 };
    let columns = [1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0];
    for isa in instruction_sets() {
        let mut out = [f32::NAN; 4];
        Col2Im { axes: vec![axis] }.run(isa, 0..4, Floats::F32(&columns), FloatsMut::F32(&mut out));
        assert_eq!(out, [1.0, 12.0, 23.0, 30.0]);
    }
}
