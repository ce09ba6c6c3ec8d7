//! Running sums and products against written-out examples.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::f16;
use insula_kernels::cumulative::{Cumulative, cumulate};
use insula_kernels::{Number, Strip};

fn run<T: Pod>(product: bool, exclusive: bool, reverse: bool, number: Number, strip: Strip, input: &[T]) -> Vec<T> {
    let mut out = input.to_vec();
    let slices = input.len() / (strip.axis * strip.inner);
    let cumulative = Cumulative { product, exclusive, reverse };
    cumulate(cumulative, number, strip, 0..slices, cast_slice(input), cast_slice_mut(&mut out));
    out
}

#[test]
fn sums_run_both_ways_with_and_without_the_element() {
    let (strip, input) = (Strip { axis: 4, inner: 1 }, [1i64, 2, 3, 4]);
    assert_eq!(run(false, false, false, Number::I64, strip, &input), [1, 3, 6, 10]);
    assert_eq!(run(false, true, false, Number::I64, strip, &input), [0, 1, 3, 6]);
    assert_eq!(run(false, false, true, Number::I64, strip, &input), [10, 9, 7, 4]);
    assert_eq!(run(false, true, true, Number::I64, strip, &input), [9, 7, 4, 0]);
}

#[test]
fn products_run_along_any_axis() {
    let input = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0];
    let found = run(true, false, false, Number::F64, Strip { axis: 3, inner: 2 }, &input);
    assert_eq!(found, [1.0, 2.0, 3.0, 8.0, 15.0, 48.0]);
    let found = run(true, true, false, Number::F64, Strip { axis: 3, inner: 1 }, &input);
    assert_eq!(found, [1.0, 1.0, 2.0, 1.0, 4.0, 20.0]);
}

#[test]
fn halves_run_in_single_precision() {
    let input = vec![f16::from_f32(0.1); 4000];
    let found = run(false, false, false, Number::F16, Strip { axis: 4000, inner: 1 }, &input);
    assert_eq!(found[3999], f16::from_f32(f16::from_f32(0.1).to_f32() * 4000.0));
}
