//! Shapes and rows: what each operation makes of them, and what it refuses.

use insula_core::DType;
use proptest::prelude::*;

use crate::error::LoadErrorKind;
use crate::op::{ArgExtreme, AveragePool, BinaryOp, Conv, Pads, Reduce, Reduction, Window};

use super::*;

/// `b` is the batch.
fn dims(text: &str) -> Dims {
    let dim = |part: &str| if part == "b" { Dim::Batch } else { Dim::Fixed(part.parse().unwrap()) };
    text.split_whitespace().map(dim).collect()
}

fn inferred(op: &Op, inputs: &[&str]) -> LoadResult<Dims> {
    let types: Vec<TensorType> =
        inputs.iter().map(|text| TensorType { dtype: DType::Fp32, dims: dims(text) }).collect();
    infer(op, &types.iter().collect::<Vec<_>>()).map(|tensor| tensor.dims)
}

fn assert_makes(op: &Op, inputs: &[&str], output: &str) {
    assert_eq!(inferred(op, inputs).unwrap(), dims(output), "{op:?} of {inputs:?}");
}

fn assert_refuses(op: &Op, inputs: &[&str], kind: LoadErrorKind) {
    assert_eq!(inferred(op, inputs).unwrap_err().kind(), kind, "{op:?} of {inputs:?}");
}

const ADD: Op = Op::Binary(BinaryOp::Add);

#[test]
fn broadcasting_keeps_the_batch_in_front() {
    assert_makes(&ADD, &["b 4", "4"], "b 4");
    assert_makes(&ADD, &["b 1 4", "3 1"], "b 3 4");
    assert_makes(&ADD, &["1 4", "b 1"], "b 4");
    assert_makes(&ADD, &["", "b 4"], "b 4");
    assert_refuses(&ADD, &["b 4", "3 4"], LoadErrorKind::RowsMeet);
    assert_refuses(&ADD, &["b 1", "b 4 1"], LoadErrorKind::RowsMeet);
    assert_refuses(&ADD, &["b 4", "5 1 1"], LoadErrorKind::RowsMeet);
    assert_refuses(&ADD, &["b 4", "3"], LoadErrorKind::Malformed);
}

#[test]
fn products_sum_over_fixed_dimensions_alone() {
    assert_makes(&Op::MatMul, &["b 4", "4 5"], "b 5");
    assert_makes(&Op::MatMul, &["b 2 3 4", "b 1 4 5"], "b 2 3 5");
    assert_makes(&Op::MatMul, &["3 4", "b 4 5"], "b 3 5");
    assert_refuses(&Op::MatMul, &["b 4", "b 5"], LoadErrorKind::RowsMeet);
    assert_refuses(&Op::MatMul, &["b 4", "2 4 5"], LoadErrorKind::RowsMeet);
    assert_refuses(&Op::MatMul, &["b 4", "5 4"], LoadErrorKind::Malformed);
    assert_refuses(&Op::MatMul, &["b 4", "4"], LoadErrorKind::Malformed);
}

#[test]
fn reductions_leave_the_batch_alone() {
    let mean =
        |axes: &[usize], keep_dims| Op::Reduce(Reduce { reduction: Reduction::Mean, axes: axes.into(), keep_dims });
    assert_makes(&mean(&[1, 3], true), &["b 2 3 4"], "b 1 3 1");
    assert_makes(&mean(&[1, 3], false), &["b 2 3 4"], "b 3");
    assert_refuses(&mean(&[0], true), &["b 2"], LoadErrorKind::RowsMeet);
    assert_refuses(&mean(&[], true), &["b 2"], LoadErrorKind::Malformed);
    assert_refuses(&mean(&[2], true), &["b 2"], LoadErrorKind::Malformed);
    assert_refuses(&Op::Softmax { axis: 0, logarithm: false }, &["b 2"], LoadErrorKind::RowsMeet);
    assert_makes(&Op::Softmax { axis: 0, logarithm: false }, &["3 2"], "3 2");
}

#[test]
fn transpositions_leave_the_batch_in_front() {
    let transpose = |permutation: &[usize]| Op::Transpose { permutation: permutation.into() };
    assert_makes(&transpose(&[0, 2, 1]), &["b 2 3"], "b 3 2");
    assert_refuses(&transpose(&[1, 0, 2]), &["b 2 3"], LoadErrorKind::RowsMeet);
    assert_refuses(&transpose(&[0, 1, 1]), &["b 2 3"], LoadErrorKind::Malformed);
    assert_refuses(&transpose(&[0, 1]), &["b 2 3"], LoadErrorKind::Malformed);
    assert_refuses(&transpose(&[0, 1, 3]), &["b 2 3"], LoadErrorKind::Malformed);
}

fn window(kernel: usize, stride: usize, dilation: usize, pad: usize) -> Window {
    let pads = Pads { before: [0, pad, pad], after: [0, pad, pad] };
    let flat = |size| [1, size, size];
    Window { kernel: flat(kernel), strides: flat(stride), dilations: flat(dilation), pads }
}

#[test]
fn windows_are_counted() {
    let conv =
        |kernel, stride, dilation, pad| Op::Conv(Conv { window: window(kernel, stride, dilation, pad), groups: 1 });
    assert_makes(&conv(3, 1, 1, 1), &["b 8 8 2", "5 2 3 3"], "b 8 8 5");
    assert_makes(&conv(3, 2, 1, 0), &["b 8 8 2", "5 2 3 3"], "b 3 3 5");
    assert_makes(&conv(3, 1, 3, 0), &["b 8 8 2", "5 2 3 3"], "b 2 2 5");
    assert_refuses(&conv(3, 1, 4, 0), &["b 8 8 2", "5 2 3 3"], LoadErrorKind::Malformed);
    assert_refuses(&conv(3, 1, 1, 1), &["b 8 8 3", "5 2 3 3"], LoadErrorKind::Malformed);
    assert_refuses(&conv(3, 1, 1, 1), &["b 8 2", "5 2 3 3"], LoadErrorKind::Malformed);
    assert_makes(&Op::MaxPool(window(2, 2, 1, 0)), &["b 5 4 7"], "b 2 2 7");
    let average =
        Op::AveragePool(AveragePool { window: window(1, 1, 1, 1), count_include_pad: false, overhang: [0; 3] });
    assert_refuses(&average, &["b 4 4 1"], LoadErrorKind::Unsupported);
}

#[test]
fn types_follow_the_operation() {
    let half = TensorType { dtype: DType::Fp16, dims: dims("b 2") };
    let wide = TensorType { dtype: DType::Fp32, dims: dims("b 2") };
    assert_eq!(infer(&ADD, &[&half, &half]).unwrap().dtype, DType::Fp16);
    assert!(infer(&ADD, &[&half, &wide]).is_err());
    assert_eq!(infer(&Op::Cast { to: DType::Int8 }, &[&half]).unwrap().dtype, DType::Int8);
    let best = Op::ArgExtreme(ArgExtreme { largest: true, axis: 1, keep_dims: true, select_last_index: false });
    assert_eq!(infer(&best, &[&half]).unwrap().dtype, DType::Int64);
    assert!(infer(&ADD, &[&half]).is_err());
}

proptest! {
    #[test]
    fn counted_windows_fit_and_one_more_does_not(size in 1usize..40, pads in 0usize..8, kernel in 1usize..6, stride in 1usize..5, dilation in 1usize..4) {
        let reach = (kernel - 1) * dilation + 1;
        match window_output(size, pads, kernel, stride, dilation) {
            Ok(outputs) => {
                prop_assert!((outputs - 1) * stride + reach <= size + pads);
                prop_assert!(outputs * stride + reach > size + pads);
            }
            Err(_) => prop_assert!(reach > size + pads),
        }
    }

    #[test]
    fn windows_without_a_pixel_are_found(size in 1usize..6, before in 0usize..7, after in 0usize..7, kernel in 1usize..5, stride in 1usize..4, dilation in 1usize..4) {
        let pads = Pads { before: [0, before, 0], after: [0, after, 0] };
        let pool = Window { kernel: [1, kernel, 1], strides: [1, stride, 1], dilations: [1, dilation, 1], pads };
        if let Ok(outputs) = window_output(size, before + after, kernel, stride, dilation) {
            let holds = |output: usize| (0..kernel).any(|i| (before..before + size).contains(&(output * stride + i * dilation)));
            prop_assert_eq!(pool_windows_hold_pixels(&pool, [1, size, 1]).is_ok(), (0..outputs).all(holds));
        }
    }

    #[test]
    fn no_window_overflows(size in any::<usize>(), pads in any::<usize>(), kernel in any::<usize>(), stride in any::<usize>(), dilation in any::<usize>()) {
        if let Ok(outputs) = window_output(size, pads, kernel, stride, dilation) {
            prop_assert!(outputs >= 1);
        }
    }
}
