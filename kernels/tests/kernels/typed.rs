//! Operations of tensors of any type: arithmetic, comparisons, bits and choices, against the definition.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use insula_kernels::Number;
use insula_kernels::elementwise::{
    Arithmetic, Binary, Bitwise, Broadcast, Comparison, arithmetic, bitwise, compare, select,
};
use insula_kernels::{Activation, Floats, FloatsMut, Isa};

use crate::numbers::{bits, values};

fn pairs<T: Pod>(operation: Arithmetic, number: Number, a: &[T], b: &[T]) -> Vec<T> {
    let broadcast = Broadcast::new(&[a.len()], &[b.len()], false).unwrap();
    let mut out = vec![T::zeroed(); a.len().max(b.len())];
    let rows = 0..broadcast.rows();
    arithmetic(operation, number, &broadcast, rows, (cast_slice(a), cast_slice(b)), cast_slice_mut(&mut out));
    out
}

#[test]
fn integers_divide_towards_zero_and_never_fail() {
    let (a, b) = ([7i8, -7, 7, -128, 5], [2i8, 2, -2, -1, 0]);
    assert_eq!(pairs(Arithmetic::Divide, Number::I8, &a, &b), [3, -3, -3, -128, 0]);
    assert_eq!(pairs(Arithmetic::Remainder, Number::I8, &a, &b), [1, -1, 1, 0, 0]);
    assert_eq!(pairs(Arithmetic::Modulo, Number::I8, &a, &b), [1, 1, -1, 0, 0]);
}

#[test]
fn integers_wrap_around() {
    assert_eq!(pairs(Arithmetic::Add, Number::U8, &[250u8, 1], &[10u8]), [4, 11]);
    assert_eq!(pairs(Arithmetic::Multiply, Number::I32, &[i32::MAX], &[2]), [-2]);
    assert_eq!(pairs(Arithmetic::Subtract, Number::U64, &[0u64], &[1]), [u64::MAX]);
}

#[test]
fn powers_of_integers_lose_their_fraction() {
    let (a, b) = ([2i64, -3, 2, 1, -1, -1, 0], [10i64, 3, -1, -5, -4, -3, 0]);
    assert_eq!(pairs(Arithmetic::Power, Number::I64, &a, &b), [1024, -27, 0, 1, 1, -1, 1]);
}

#[test]
fn extremes_of_every_type_are_found() {
    assert_eq!(pairs(Arithmetic::Maximum, Number::U16, &[1u16, 9], &[5]), [5, 9]);
    assert_eq!(pairs(Arithmetic::Minimum, Number::F64, &[1.0, f64::NEG_INFINITY], &[0.5]), [0.5, f64::NEG_INFINITY]);
    assert!(pairs(Arithmetic::Minimum, Number::F64, &[f64::NAN], &[0.5])[0].is_nan());
}

#[test]
fn brain_floats_round_once() {
    let (a, b) = ([bf16::from_f32(1.0)], [bf16::from_f32(3.0)]);
    assert_eq!(pairs(Arithmetic::Divide, Number::Bf16, &a, &b), [bf16::from_f32(1.0 / 3.0)]);
}

#[test]
fn both_ways_to_compute_floats_give_the_same_bits() {
    let (a, b) = (values(600, 1), values(600, 2));
    for operation in [Arithmetic::Add, Arithmetic::Divide, Arithmetic::Power, Arithmetic::Modulo, Arithmetic::Rectify] {
        let broadcast = Broadcast::new(&[600], &[600], false).unwrap();
        let binary =
            Binary { isa: Isa::detect(), arithmetic: operation, broadcast, bias: None, activation: Activation::None };
        let mut out = vec![0.0; 600];
        binary.run(0..1, Floats::F32(&a), Floats::F32(&b), FloatsMut::F32(&mut out));
        let typed = pairs(operation, Number::F32, &a, &b);
        assert!(
            bits(&out) == bits(&typed) || out.iter().zip(&typed).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
        );
    }
}

fn compared<T: Pod>(comparison: Comparison, number: Number, a: &[T], b: &[T]) -> Vec<u8> {
    let broadcast = Broadcast::new(&[a.len()], &[b.len()], false).unwrap();
    let mut out = vec![7; a.len().max(b.len())];
    compare(comparison, number, &broadcast, 0..broadcast.rows(), (cast_slice(a), cast_slice(b)), &mut out);
    out
}

#[test]
fn comparisons_give_truth_values() {
    let (a, b) = ([1.0f32, 2.0, 3.0, f32::NAN], [2.0f32]);
    assert_eq!(compared(Comparison::Less, Number::F32, &a, &b), [1, 0, 0, 0]);
    assert_eq!(compared(Comparison::LessOrEqual, Number::F32, &a, &b), [1, 1, 0, 0]);
    assert_eq!(compared(Comparison::Greater, Number::F32, &a, &b), [0, 0, 1, 0]);
    assert_eq!(compared(Comparison::GreaterOrEqual, Number::F32, &a, &b), [0, 1, 1, 0]);
    assert_eq!(compared(Comparison::Equal, Number::F32, &a, &b), [0, 1, 0, 0]);
    assert_eq!(compared(Comparison::Less, Number::U64, &[1u64, u64::MAX], &[u64::MAX]), [1, 0]);
    let halves = [f16::from_f32(-1.0), f16::from_f32(1.0)];
    assert_eq!(compared(Comparison::Less, Number::F16, &halves, &[f16::ZERO]), [1, 0]);
}

#[test]
fn bits_combine_and_shift() {
    let run = |operation, a: &[i8], b: &[i8]| {
        let broadcast = Broadcast::new(&[a.len()], &[b.len()], false).unwrap();
        let mut out = vec![0i8; a.len().max(b.len())];
        let operands = (cast_slice(a), cast_slice(b));
        bitwise(operation, Number::I8, &broadcast, 0..broadcast.rows(), operands, cast_slice_mut(&mut out));
        out
    };
    assert_eq!(run(Bitwise::And, &[0b1100, -1], &[0b1010, 5]), [0b1000, 5]);
    assert_eq!(run(Bitwise::Or, &[0b1100], &[0b1010]), [0b1110]);
    assert_eq!(run(Bitwise::ExclusiveOr, &[0b1100], &[-1]), [!0b1100]);
    assert_eq!(run(Bitwise::ShiftLeft, &[1, 127, 1, 1], &[3, 1, 8, -1]), [8, -2, 0, 0]);
    assert_eq!(run(Bitwise::ShiftRight, &[64, -64, -1, 1, -5], &[3, 3, 8, 8, -1]), [8, -8, -1, 0, -1]);
    let broadcast = Broadcast::new(&[2], &[2], false).unwrap();
    let mut out = [0u8; 2];
    bitwise(Bitwise::ShiftRight, Number::U8, &broadcast, 0..1, (&[200, 200], &[1, 9]), &mut out);
    assert_eq!(out, [100, 0]);
}

#[test]
fn choices_broadcast_three_tensors() {
    let (condition, chosen, otherwise) = ([1u8, 0], [10i64, 20, 30], [-1i64]);
    let broadcast = Broadcast::of([&[2, 1], &[3], &[]], false).unwrap();
    let mut out = [0i64; 6];
    let operands = (&condition[..], cast_slice(&chosen), cast_slice(&otherwise));
    select(8, &broadcast, 0..broadcast.rows(), operands, cast_slice_mut(&mut out));
    assert_eq!(out, [10, 20, 30, -1, -1, -1]);
    let broadcast = Broadcast::of([&[3], &[3], &[3]], false).unwrap();
    let mut out = [0u8; 3];
    select(1, &broadcast, 0..1, (&[0, 1, 0], &[1, 2, 3], &[4, 5, 6]), &mut out);
    assert_eq!(out, [4, 2, 6]);
}
