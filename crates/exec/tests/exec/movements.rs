//! Operations that move elements, find them, or read images between pixels: on every type, against values worked out by hand.

use half::{bf16, f16};
use insula_core::{Code, DType, Error, Shape};
use insula_exec::{CpuDevice, Device, ExecError};
use insula_model::op::Axes;
use insula_model::op::movement::{AxisSlice, Combine, Found, Movement, Pad, PadMode, Top, Unique, UniqueOutput};
use insula_model::op::sampling::{Coordinates, Interpolation, Resize, Rounding, Sampling};
use insula_model::{Constant, Op, Precision};

use crate::loaded_model::{Loaded, elements, run_entries};
use crate::network::Network;

fn constant(dtype: DType, dims: &[usize], values: &[i64]) -> Constant {
    let element = |value: &i64| match dtype {
        DType::Fp16 => f16::from_f64(*value as f64).to_le_bytes().to_vec(),
        DType::Bf16 => bf16::from_f64(*value as f64).to_le_bytes().to_vec(),
        DType::Fp32 => (*value as f32).to_le_bytes().to_vec(),
        DType::Fp64 => (*value as f64).to_le_bytes().to_vec(),
        other => value.to_le_bytes()[..other.size().unwrap()].to_vec(),
    };
    let bytes: Vec<u8> = values.iter().flat_map(element).collect();
    Constant::new(dtype, Shape::new(dims).unwrap(), &bytes).unwrap()
}

fn int64s(dims: &[usize], values: &[i64]) -> Constant {
    constant(DType::Int64, dims, values)
}

fn run(op: impl Into<Running>, inputs: &[&Constant]) -> Result<Constant, Error> {
    CpuDevice::new().folder().fold(&op.into().0, inputs).map(Option::unwrap)
}

struct Running(Op);

impl From<Movement> for Running {
    fn from(movement: Movement) -> Running {
        Running(Op::Move(movement))
    }
}

impl From<Resize> for Running {
    fn from(resize: Resize) -> Running {
        Running(Op::Sample(Sampling::Resize(resize)))
    }
}

const TYPES: [DType; 13] = [
    DType::Bool,
    DType::Uint8,
    DType::Uint16,
    DType::Uint32,
    DType::Uint64,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::Fp16,
    DType::Bf16,
    DType::Fp32,
    DType::Fp64,
];

#[test]
fn every_type_is_moved() {
    for dtype in TYPES {
        let input = constant(dtype, &[2, 3], &[1, 0, 1, 0, 0, 1]);
        let expect = |movement: Movement, inputs: &[&Constant], dims: &[usize], values: &[i64]| {
            assert_eq!(run(movement, inputs).unwrap(), constant(dtype, dims, values), "{dtype}");
        };
        let slice = AxisSlice { axis: 1, start: 2, step: -2, size: 2 };
        expect(Movement::Slice([slice].into_iter().collect()), &[&input], &[2, 2], &[1, 1, 1, 0]);
        expect(Movement::Concat { axis: 1 }, &[&input, &input], &[2, 6], &[1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1]);
        let pad =
            |mode| Movement::Pad(Pad { before: Axes::from_slice(&[1, 0]), after: Axes::from_slice(&[0, 1]), mode });
        let one = constant(dtype, &[], &[1]);
        expect(pad(PadMode::Constant), &[&input, &one], &[3, 4], &[1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1]);
        expect(pad(PadMode::Reflect), &[&input], &[3, 4], &[0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0]);
        expect(Movement::Gather { axis: 1 }, &[&input, &int64s(&[2], &[-1, 1])], &[2, 2], &[1, 0, 1, 0]);
        let elsewhere = int64s(&[2, 1], &[1, 2]);
        expect(Movement::GatherElements { axis: 1 }, &[&input, &elsewhere], &[2, 1], &[0, 1]);
        let updates = constant(dtype, &[2, 1], &[1, 0]);
        let scatter = Movement::ScatterElements { axis: 1, combine: None };
        expect(scatter, &[&input, &elsewhere, &updates], &[2, 3], &[1, 1, 1, 0, 0, 0]);
        expect(Movement::Triangle { upper: true }, &[&input, &int64s(&[], &[1])], &[2, 3], &[0, 0, 1, 0, 0, 1]);
        let transposed = run(Running(Op::Transpose { permutation: Axes::from_slice(&[1, 0]) }), &[&input]).unwrap();
        assert_eq!(transposed, constant(dtype, &[3, 2], &[1, 0, 0, 0, 1, 1]));
    }
}

#[test]
fn numbers_are_combined_and_ordered() {
    for dtype in TYPES.into_iter().filter(|dtype| *dtype != DType::Bool) {
        let input = constant(dtype, &[4], &[3, 5, 2, 5]);
        let combined = |combine| {
            let scatter = Movement::ScatterElements { axis: 0, combine: Some(combine) };
            run(scatter, &[&input, &int64s(&[2], &[0, 0]), &constant(dtype, &[2], &[4, 2])]).unwrap()
        };
        for (combine, first) in [(Combine::Add, 9), (Combine::Multiply, 24), (Combine::Max, 4), (Combine::Min, 2)] {
            assert_eq!(combined(combine), constant(dtype, &[4], &[first, 5, 2, 5]), "{combine:?} of {dtype}");
        }
        let top = |largest, positions| Movement::Top(Top { axis: 0, count: 3, largest, positions });
        assert_eq!(run(top(true, false), &[&input]).unwrap(), constant(dtype, &[3], &[5, 5, 3]));
        assert_eq!(run(top(true, true), &[&input]).unwrap(), int64s(&[3], &[1, 3, 0]));
        assert_eq!(run(top(false, true), &[&input]).unwrap(), int64s(&[3], &[2, 0, 1]));
        let unique = |output| Movement::Unique(Unique { axis: None, ascending: true, output });
        assert_eq!(run(unique(UniqueOutput::Count), &[&input]).unwrap(), int64s(&[], &[3]));
        assert_eq!(run(unique(UniqueOutput::First { count: 3 }), &[&input]).unwrap(), int64s(&[3], &[2, 0, 1]));
        assert_eq!(run(unique(UniqueOutput::Inverse), &[&input]).unwrap(), int64s(&[4], &[1, 2, 0, 2]));
        assert_eq!(run(Movement::NonZero(Found::Count), &[&input]).unwrap(), int64s(&[], &[4]));
    }
}

fn resize(size: usize, interpolation: Interpolation, coordinates: Coordinates) -> Resize {
    let scale = size as f64 / 4.0;
    Resize { axis: 1, size, scale, coordinates, interpolation, exclude_outside: false, extrapolation: -1.0 }
}

#[test]
fn an_axis_is_resized_in_each_way() {
    let input = constant(DType::Fp32, &[1, 4, 1], &[0, 10, 20, 30]);
    let run = |resize: Resize| run(resize, &[&input]).unwrap().typed::<f32>().unwrap().to_vec();
    let nearest = Interpolation::Nearest(Rounding::PreferFloor);
    let linear = Interpolation::Linear { antialias: false };
    assert_eq!(run(resize(2, nearest, Coordinates::Asymmetric)), [0.0, 20.0]);
    assert_eq!(run(resize(2, linear, Coordinates::HalfPixel)), [5.0, 25.0]);
    assert_eq!(run(resize(7, linear, Coordinates::AlignCorners)), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
    let smooth = run(resize(2, Interpolation::Linear { antialias: true }, Coordinates::HalfPixel));
    assert_eq!(smooth, [6.25, 23.75], "a quarter of the weight is the border's");
    let cubic = run(resize(4, Interpolation::Cubic { a: -0.75, antialias: false }, Coordinates::HalfPixel));
    assert_eq!(cubic, [0.0, 10.0, 20.0, 30.0]);
    let crop = Coordinates::CropAndResize { start: 0.0, end: 2.0 };
    assert_eq!(run(resize(3, linear, crop)), [0.0, 30.0, -1.0]);
}

/// Rows of two numbers that pick from a table of five.
fn picking() -> Loaded {
    let network = Network::new(&[2])
        .weight("table", &[5, 3], 0.0, 1.0)
        .node("Cast", &["x"], "indices", &[("to", &[7])])
        .node("Gather", &["table", "indices"], "y", &[]);
    Loaded::from_bytes(network.finish("y", &[2, 3]), Precision::Fp32)
}

#[test]
fn an_index_beyond_its_axis_is_the_requests_fault() {
    let loaded = picking();
    let plan = loaded.lower(2);
    let answer = |indices: [f32; 2]| {
        let mut outputs = loaded.rooms(1, &[]);
        let ended = run_entries(&*plan, &[(1, &[bytemuck::cast_slice(&indices)])], &mut [&mut outputs]);
        ended.map(|()| elements::<f32>(&outputs[0]))
    };
    let table: Vec<f32> = answer([0.0, 4.0]).unwrap();
    assert_eq!(answer([-1.0, 0.0]).unwrap(), [&table[3..], &table[..3]].concat());
    for index in [5.0, -6.0, 1e18, f32::INFINITY] {
        let error = answer([0.0, index]).unwrap_err();
        assert!(matches!(&error, ExecError::Invalid(what) if what.contains("out of range")), "{error}");
        assert_eq!(Error::from(error).code(), Code::InvalidArgument);
    }
}
