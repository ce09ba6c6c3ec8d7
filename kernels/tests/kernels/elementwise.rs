//! Arithmetic of two tensors of halves or floats against the definition.

use half::f16;
use insula_kernels::elementwise::{Arithmetic, Binary, Broadcast};
use insula_kernels::{Activation, Floats, FloatsMut, Isa};

use crate::numbers::{bits, halves, instruction_sets, values};

const ARITHMETIC: [Arithmetic; 7] = [
    Arithmetic::Add,
    Arithmetic::Subtract,
    Arithmetic::Multiply,
    Arithmetic::Divide,
    Arithmetic::Maximum,
    Arithmetic::Minimum,
    Arithmetic::Rectify,
];

fn scalar(arithmetic: Arithmetic, a: f32, b: f32) -> f32 {
    match arithmetic {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::Power => a.powf(b),
        Arithmetic::Remainder => a % b,
        Arithmetic::Modulo => a - (a / b).floor() * b,
        Arithmetic::Maximum => {
            if a > b {
                a
            } else {
                b
            }
        }
        Arithmetic::Minimum => {
            if a < b {
                a
            } else {
                b
            }
        }
        Arithmetic::Rectify if a < 0.0 => a * b,
        Arithmetic::Rectify => a,
    }
}

/// The element of a tensor of `shape` that meets element `index` of `output` under broadcasting.
fn broadcast(values: &[f32], shape: &[usize], output: &[usize], mut index: usize) -> f32 {
    let (mut offset, mut stride) = (0, 1);
    for (back, size) in output.iter().rev().enumerate() {
        let own = if back < shape.len() { shape[shape.len() - 1 - back] } else { 1 };
        offset += if own == 1 { 0 } else { index % size * stride };
        (index, stride) = (index / size, stride * own);
    }
    values[offset]
}

#[test]
fn every_operation_meets_the_right_elements_and_rounds_once() {
    let shapes: [(&[usize], &[usize], &[usize]); 6] = [
        (&[3, 300], &[3, 300], &[3, 300]),
        (&[3, 300], &[300], &[3, 300]),
        (&[3, 300], &[], &[3, 300]),
        (&[], &[3, 300], &[3, 300]),
        (&[3, 1, 5], &[1, 20, 5], &[3, 20, 5]),
        (&[4, 2, 3], &[2, 1], &[4, 2, 3]),
    ];
    for (a_shape, b_shape, shape) in shapes {
        let (a, b) = (values(a_shape.iter().product(), 1), values(b_shape.iter().product(), 2));
        let last = shape[shape.len() - 1];
        let bias = values(last, 3);
        for (arithmetic, isa) in
            ARITHMETIC.into_iter().flat_map(|arithmetic| instruction_sets().map(|isa| (arithmetic, isa)))
        {
            let rows = Broadcast::new(a_shape, b_shape, true).unwrap();
            let binary = Binary { isa, arithmetic, broadcast: rows, bias: Some(&bias), activation: Activation::Relu };
            let mut out = vec![0.0; shape.iter().product()];
            binary.run(0..rows.rows(), Floats::F32(&a), Floats::F32(&b), FloatsMut::F32(&mut out));
            for (index, out) in out.iter().enumerate() {
                let (a, b) = (broadcast(&a, a_shape, shape, index), broadcast(&b, b_shape, shape, index));
                assert_eq!(*out, (scalar(arithmetic, a, b) + bias[index % last]).max(0.0));
            }
            let mut stored = vec![f16::ZERO; out.len()];
            let (a, b) = (halves(&a), halves(&b));
            binary.run(0..rows.rows(), Floats::F16(&a), Floats::F16(&b), FloatsMut::F16(&mut stored));
            assert_eq!(stored, halves(&out));
        }
    }
}

#[test]
fn flat_tensors_run_in_one_row() {
    let (a, b) = (values(1000, 1), values(1000, 2));
    for arithmetic in ARITHMETIC {
        for isa in instruction_sets() {
            let broadcast = Broadcast::new(&[10, 100], &[10, 100], false).unwrap();
            let binary = Binary { isa, arithmetic, broadcast, bias: None, activation: Activation::None };
            let mut out = vec![0.0; 1000];
            binary.run(0..1, Floats::F32(&a), Floats::F32(&b), FloatsMut::F32(&mut out));
            let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| scalar(arithmetic, *a, *b)).collect();
            assert_eq!(bits(&out), bits(&expected));
        }
    }
}

#[test]
fn scale_and_shift_by_channel_are_a_product_with_a_bias() {
    let (x, scale, shift) = (values(6 * 40, 1), values(40, 2), values(40, 3));
    let broadcast = Broadcast::new(&[6, 40], &[40], true).unwrap();
    let activation = Activation::Clip { min: -0.25, max: 0.25 };
    let binary =
        Binary { isa: Isa::detect(), arithmetic: Arithmetic::Multiply, broadcast, bias: Some(&shift), activation };
    let mut out = vec![0.0; 240];
    binary.run(0..6, Floats::F32(&x), Floats::F32(&scale), FloatsMut::F32(&mut out));
    for (index, out) in out.iter().enumerate() {
        assert_eq!(*out, (x[index] * scale[index % 40] + shift[index % 40]).clamp(-0.25, 0.25));
    }
}

#[test]
fn short_rows_give_the_bits_that_they_have_alone() {
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[2, 7, 5, 3], &[3]),
        (&[2, 7, 5, 3], &[2, 1, 1, 3]),
        (&[2, 7, 5, 3], &[2, 7, 5, 1]),
        (&[2, 1, 5, 3], &[7, 1, 3]),
        (&[300, 2], &[1, 2]),
        (&[40, 1], &[1, 100]),
        (&[1, 1, 16], &[3, 40, 1]),
    ];
    for (a_shape, b_shape) in shapes {
        let (a, b) = (values(a_shape.iter().product(), 1), values(b_shape.iter().product(), 2));
        let broadcast = Broadcast::new(a_shape, b_shape, true).unwrap();
        let (rows, columns) = (broadcast.rows(), broadcast.columns());
        let bias = values(columns, 3);
        for (bias, isa) in
            [None, Some(&bias[..])].into_iter().flat_map(|bias| instruction_sets().map(|isa| (bias, isa)))
        {
            let activation = Activation::HardSwish;
            let binary = Binary { isa, arithmetic: Arithmetic::Multiply, broadcast, bias, activation };
            let run = |rows: std::ops::Range<usize>| {
                let mut out = vec![0.0; rows.len() * columns];
                binary.run(rows, Floats::F32(&a), Floats::F32(&b), FloatsMut::F32(&mut out));
                out
            };
            let each: Vec<f32> = (0..rows).flat_map(|row| run(row..row + 1)).collect();
            assert_eq!(bits(&run(0..rows)), bits(&each), "{a_shape:?} {b_shape:?}");
            assert_eq!(bits(&run(1..rows - 1)), bits(&each[columns..(rows - 1) * columns]));
        }
    }
}

#[test]
fn special_values_follow_the_standard() {
    let (nan, infinity, tiny) = (f32::NAN, f32::INFINITY, f32::from_bits(1));
    let run = |arithmetic, a: f32, b: f32| {
        let broadcast = Broadcast::new(&[9], &[9], false).unwrap();
        let binary = Binary { isa: Isa::detect(), arithmetic, broadcast, bias: None, activation: Activation::None };
        let mut out = [0.0; 9];
        binary.run(0..1, Floats::F32(&[a; 9]), Floats::F32(&[b; 9]), FloatsMut::F32(&mut out));
        assert!(out.iter().all(|x| x.to_bits() == out[0].to_bits() || x.is_nan()));
        out[0]
    };
    assert!(run(Arithmetic::Add, nan, 1.0).is_nan());
    assert!(run(Arithmetic::Subtract, infinity, infinity).is_nan());
    assert_eq!(run(Arithmetic::Divide, 1.0, 0.0), infinity);
    assert_eq!(run(Arithmetic::Add, tiny, tiny), f32::from_bits(2));
    assert!(run(Arithmetic::Maximum, nan, 1.0).is_nan() && run(Arithmetic::Maximum, 1.0, nan).is_nan());
    assert!(run(Arithmetic::Minimum, nan, 1.0).is_nan() && run(Arithmetic::Minimum, 1.0, nan).is_nan());
    assert_eq!(run(Arithmetic::Power, 0.0, 0.0), 1.0);
    assert_eq!(run(Arithmetic::Power, -2.0, 3.0), -8.0);
    assert!(run(Arithmetic::Power, -2.0, 0.5).is_nan());
    assert_eq!(run(Arithmetic::Modulo, -1.0, infinity), infinity);
    assert!(run(Arithmetic::Modulo, -4.0, 2.0).is_sign_positive());
}
