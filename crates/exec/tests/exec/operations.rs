//! Every operation on operands of any shape: computed by the device's folder, which lowers and runs a plan of one step,
//! and compared with the interpreter.

use half::f16;
use insula_core::{DType, Shape};
use insula_exec::{CpuDevice, Device};
use insula_model::op::{ArgExtreme, Reduce, Reduction};
use insula_model::{Activation, AveragePool, BinaryOp, Constant, Conv, Op, Pads, TensorType, Window, shape_inference};
use proptest::prelude::*;

use crate::interpreter::{Tensor, interpret};

/// Values in -2..=2 that halves hold exactly.
pub fn tensor(dims: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 513) as f64 / 128.0 - 2.0
    };
    Tensor::new(dims, (0..dims.iter().product()).map(|_| next()).collect())
}

fn constant(tensor: &Tensor, dtype: DType) -> Constant {
    let shape = Shape::new(&tensor.dims).unwrap();
    match dtype {
        DType::Fp16 => {
            let halves: Vec<f16> = tensor.values.iter().map(|x| f16::from_f64(*x)).collect();
            Constant::new(dtype, shape, bytemuck::cast_slice(&halves)).unwrap()
        }
        _ => singles(shape, &tensor.values.iter().map(|x| *x as f32).collect::<Vec<_>>()),
    }
}

fn singles(shape: Shape, values: &[f32]) -> Constant {
    Constant::new(DType::Fp32, shape, bytemuck::cast_slice(values)).unwrap()
}

/// The elements of a constant of floats or INT64.
pub fn values(constant: &Constant) -> Vec<f64> {
    match constant.dtype() {
        DType::Fp16 => constant.typed::<f16>().unwrap().iter().map(|x| x.to_f64()).collect(),
        DType::Int64 => constant.typed::<i64>().unwrap().iter().map(|x| *x as f64).collect(),
        _ => constant.typed::<f32>().unwrap().iter().map(|x| f64::from(*x)).collect(),
    }
}

/// Folds `op` on operands of shapes `dims` and compares. `false`: the model's rules refuse these shapes.
fn agrees(op: &Op, dims: &[&[usize]]) -> bool {
    let tensors: Vec<Tensor> = dims.iter().enumerate().map(|(index, dims)| tensor(dims, index as u64 + 5)).collect();
    for dtype in [DType::Fp32, DType::Fp16] {
        let constants: Vec<Constant> = tensors.iter().map(|tensor| constant(tensor, dtype)).collect();
        let types: Vec<TensorType> = constants.iter().map(fixed_type).collect();
        if shape_inference::infer(op, &types.iter().collect::<Vec<_>>()).is_err() {
            return false;
        }
        let folded = CpuDevice::new().folder().fold(op, &constants.iter().collect::<Vec<_>>()).unwrap().unwrap();
        let expected = interpret(op, &tensors, folded.shape().dims());
        // Sums of up to a few hundred terms below 4, stored with a relative error of 2^-24 or 2^-11.
        let relative = if folded.dtype() == DType::Fp16 { 1e-3 } else { 1e-5 };
        for (found, exact) in values(&folded).iter().zip(&expected.values) {
            let close = (found - exact).abs() <= relative * exact.abs() + 2e-4
                || (found.is_nan() && exact.is_nan())
                || found == exact;
            assert!(close, "{found} for {exact}: {op:?} of {dims:?} in {dtype}");
        }
    }
    true
}

fn fixed_type(constant: &Constant) -> TensorType {
    let dims = constant.shape().dims().iter().map(|size| insula_model::Dim::Fixed(*size)).collect();
    TensorType { dtype: constant.dtype(), dims }
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1usize..6, 1..5)
}

/// Windows over the last `axes` axes of a volume, and the sizes of those axes.
fn windows() -> impl Strategy<Value = (Window, Vec<usize>)> {
    let triple = |range: std::ops::Range<usize>| proptest::array::uniform3(range);
    let sizes = proptest::collection::vec(1usize..8, 1..4);
    (triple(1..4), triple(1..4), triple(1..3), triple(0..3), triple(0..3), sizes).prop_map(
        |(kernel, strides, dilations, before, after, sizes)| {
            let there = |triple: [usize; 3], missing: usize| {
                std::array::from_fn(|axis| if axis + sizes.len() >= 3 { triple[axis] } else { missing })
            };
            let pads = Pads { before: there(before, 0), after: there(after, 0) };
            let (kernel, strides, dilations) = (there(kernel, 1), there(strides, 1), there(dilations, 1));
            (Window { kernel, strides, dilations, pads }, sizes)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn convolutions_agree((window, sizes) in windows(), images in 1usize..3, groups in 1usize..4, channels in 1usize..4, filters in 1usize..4) {
        let op = Op::Conv(Conv { window, groups });
        let kernel = &window.kernel[3 - sizes.len()..];
        let image = [&[images], &sizes[..], &[channels * groups]].concat();
        agrees(&op, &[&image, &[&[filters * groups, channels], kernel].concat()]);
    }

    #[test]
    fn poolings_agree((window, sizes) in windows(), images in 1usize..3, channels in 1usize..5, count_include_pad: bool) {
        let image = [&[images], &sizes[..], &[channels]].concat();
        agrees(&Op::MaxPool(window), &[&image]);
        agrees(&Op::AveragePool(AveragePool { window, count_include_pad, overhang: [0; 3] }), &[&image]);
    }

    #[test]
    fn products_agree(batch in proptest::collection::vec(1usize..4, 0..3), masks in (any::<u8>(), any::<u8>()), drop in 0usize..3, sizes in (1usize..9, 1usize..40, 1usize..20)) {
        let (rows, depth, columns) = sizes;
        let masked = |mask: u8| batch.iter().enumerate().map(|(axis, size)| if mask >> axis & 1 == 1 { 1 } else { *size }).collect::<Vec<_>>();
        let left = [masked(masks.0), vec![rows, depth]].concat();
        let right = [masked(masks.1), vec![depth, columns]].concat();
        assert!(agrees(&Op::MatMul, &[&left, &right]));
        let short = &right[drop.min(right.len() - 2)..];
        assert!(agrees(&Op::MatMul, &[&left, short]));
    }

    #[test]
    fn arithmetic_agrees(dims in shapes(), mask in any::<u8>(), drop in 0usize..4) {
        let other: Vec<usize> = dims.iter().enumerate().map(|(axis, size)| if mask >> axis & 1 == 1 { 1 } else { *size }).skip(drop).collect();
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Max, BinaryOp::PRelu] {
            assert!(agrees(&Op::Binary(op), &[&dims, &other]));
            assert!(agrees(&Op::Binary(op), &[&other, &dims]));
        }
    }

    #[test]
    fn functions_of_one_tensor_agree(dims in shapes(), axis in 0usize..4, keep_dims: bool, last: bool, mask in 1u8..16) {
        for activation in [
            Activation::Relu,
            Activation::LeakyRelu { slope: 0.25 },
            Activation::Clip { min: -0.5, max: 1.0 },
            Activation::Sigmoid,
            Activation::HardSigmoid { alpha: 0.5, beta: 0.25 },
            Activation::HardSwish,
            Activation::Swish { alpha: 1.0 },
            Activation::Gelu,
            Activation::GeluTanh,
            Activation::Tanh,
        ] {
            assert!(agrees(&Op::Activation(activation), &[&dims]));
        }
        let axis = axis % dims.len();
        assert!(agrees(&Op::Softmax { axis, logarithm: last }, &[&dims]));
        assert!(agrees(&Op::ArgExtreme(ArgExtreme { largest: keep_dims, axis, keep_dims, select_last_index: last }), &[&dims]));
        let axes: insula_model::op::Axes = (0..dims.len()).filter(|axis| mask >> axis & 1 == 1).collect();
        if !axes.is_empty() {
            for reduction in [Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::L1, Reduction::L2, Reduction::LogSumExp] {
                assert!(agrees(&Op::Reduce(Reduce { reduction, axes: axes.clone(), keep_dims }), &[&dims]));
            }
        }
    }

    #[test]
    fn normalisations_agree(dims in shapes(), centred: bool, inputs in 1usize..4) {
        let last = [dims[dims.len() - 1]];
        let operands: Vec<&[usize]> = [&dims[..], &last, &last][..inputs].to_vec();
        assert!(agrees(&Op::Normalize { centred, epsilon: 0.5 }, &operands));
    }

    #[test]
    fn transpositions_agree((dims, permutation) in shapes().prop_flat_map(|dims| {
        let axes: Vec<usize> = (0..dims.len()).collect();
        (Just(dims), Just(axes).prop_shuffle())
    })) {
        assert!(agrees(&Op::Transpose { permutation: permutation.into_iter().collect() }, &[&dims]));
    }
}

#[test]
fn conversions_agree_for_every_type_that_casts() {
    let device = CpuDevice::new();
    let integers = [
        DType::Uint8,
        DType::Uint16,
        DType::Uint32,
        DType::Uint64,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
    ];
    let floats = [DType::Fp16, DType::Bf16, DType::Fp32, DType::Fp64];
    let small = singles(Shape::new(&[3]).unwrap(), &[0.0, 1.0, 100.0]);
    for from in integers.into_iter().chain(floats) {
        let first = device.folder().fold(&Op::Cast { to: from }, &[&small]).unwrap().unwrap();
        for to in integers.into_iter().chain(floats) {
            let second = device.folder().fold(&Op::Cast { to }, &[&first]).unwrap().unwrap();
            assert_eq!(second.dtype(), to);
            let back = device.folder().fold(&Op::Cast { to: DType::Fp32 }, &[&second]).unwrap().unwrap();
            assert_eq!(back, small, "{from} to {to}");
        }
    }
}

#[test]
fn thin_matrices_that_would_fill_memory_with_padding_are_refused() {
    let device = CpuDevice::new();
    let thin = singles(Shape::new(&[8_000_000, 1]).unwrap(), &vec![0.5; 8_000_000]);
    let row = singles(Shape::new(&[1, 8_000_000]).unwrap(), &vec![0.5; 8_000_000]);
    let error = device.folder().fold(&Op::MatMul, &[&row, &thin]).unwrap_err();
    assert!(error.message().contains("too thin"), "{error}");
}
