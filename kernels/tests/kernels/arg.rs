//! The position of the largest and of the smallest element.

use bytemuck::cast_slice;
use insula_kernels::arg::{Extreme, extreme_positions};
use insula_kernels::{Number, Strip};

use crate::numbers::halves;

fn run(strip: Strip, last: bool, input: &[f32]) -> Vec<i64> {
    let find = |largest: bool, number: Number, input: &[u8]| {
        let slices = input.len() / number.size() / (strip.axis * strip.inner);
        let mut out = vec![-1; slices * strip.inner];
        extreme_positions(Extreme { largest, last }, number, strip, 0..slices, input, &mut out);
        out
    };
    let out = find(true, Number::F32, cast_slice(input));
    assert_eq!(out, find(true, Number::F16, cast_slice(&halves(input))));
    let negative: Vec<f32> = input.iter().map(|x| -x).collect();
    assert_eq!(out, find(false, Number::F32, cast_slice(&negative)));
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

#[test]
fn integers_that_no_float_holds_are_told_apart() {
    let input = [i64::MAX - 1, i64::MAX, i64::MIN, i64::MIN + 1];
    let find = |largest: bool| {
        let mut out = [-1];
        let strip = Strip { axis: 4, inner: 1 };
        let extreme = Extreme { largest, last: false };
        extreme_positions(extreme, Number::I64, strip, 0..1, cast_slice(&input), &mut out);
        out[0]
    };
    assert_eq!((find(true), find(false)), (1, 2));
}
