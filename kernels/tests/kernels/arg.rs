//! The position of the largest element.

use insula_kernels::arg::arg_max;
use insula_kernels::{Floats, Isa, Strip};

use crate::numbers::halves;

fn run(strip: Strip, last: bool, input: &[f32]) -> Vec<i64> {
    let slices = input.len() / (strip.axis * strip.inner);
    let mut out = vec![-1; slices * strip.inner];
    arg_max(Isa::detect(), strip, last, 0..slices, Floats::F32(input), &mut out);
    let mut from_halves = out.clone();
    arg_max(Isa::detect(), strip, last, 0..slices, Floats::F16(&halves(input)), &mut from_halves);
    assert_eq!(out, from_halves);
    out
}

#[test]
fn the_first_of_equals_wins_unless_the_last_is_asked_for() {
    let strip = Strip { axis: 4, inner: 1 };
    assert_eq!(run(strip, false, &[1.0, 3.0, 3.0, 2.0, -0.0, 0.0, -1.0, 0.0]), [1, 0]);
    assert_eq!(run(strip, true, &[1.0, 3.0, 3.0, 2.0, -0.0, 0.0, -1.0, 0.0]), [2, 3]);
}

#[test]
fn an_axis_in_the_middle_is_walked_by_its_stride() {
    assert_eq!(run(Strip { axis: 2, inner: 3 }, false, &[1.0, 5.0, 2.0, 4.0, 0.0, 2.0]), [1, 0, 0]);
}

#[test]
fn nan_is_never_the_largest() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let strip = Strip { axis: 3, inner: 1 };
    assert_eq!(run(strip, false, &[nan, -infinity, nan, nan, nan, nan, 1.0, nan, infinity]), [1, 0, 2]);
    assert_eq!(run(strip, true, &[nan, -infinity, nan, nan, nan, nan, 1.0, nan, 1.0]), [1, 0, 2]);
}
