//! Functions of one tensor against the definition in double precision, in every type that has them.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use insula_kernels::unary::{Function, apply};
use insula_kernels::{Activation, Isa, Number};

use crate::numbers::{halves, instruction_sets, values};

fn run<T: Pod>(isa: Isa, function: Function, number: Number, input: &[T]) -> Vec<T> {
    let mut out = input.to_vec();
    apply(isa, function, number, cast_slice(input), cast_slice_mut(&mut out));
    out
}

/// A function in double precision.
type Exact = fn(f64) -> f64;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Functions whose result near 0 has the relative accuracy of a float.
const RELATIVE: [(Function, Exact); 30] =
    [
        (Function::Activation(Activation::Relu), |x| x.max(0.0)),
        (Function::Activation(Activation::LeakyRelu { slope: 0.25 }), |x| if x < 0.0 { 0.25 * x } else { x }),
        (Function::Activation(Activation::Clip { min: -0.5, max: 0.5 }), |x| x.clamp(-0.5, 0.5)),
        (Function::Activation(Activation::Sigmoid), sigmoid),
        (Function::Activation(Activation::Tanh), f64::tanh),
        (Function::Activation(Activation::Swish { alpha: 0.5 }), |x| x * sigmoid(0.5 * x)),
        (Function::Absolute, f64::abs),
        (Function::Negate, |x| -x),
        (Function::Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }),
        (Function::Exponential, f64::exp),
        (Function::Logarithm, f64::ln),
        (Function::SquareRoot, f64::sqrt),
        (Function::Reciprocal, |x| 1.0 / x),
        (Function::Floor, f64::floor),
        (Function::Ceiling, f64::ceil),
        (Function::Round, f64::round_ties_even),
        (Function::Sine, f64::sin),
        (Function::Cosine, f64::cos),
        (Function::Tangent, f64::tan),
        (Function::ArcSine, f64::asin),
        (Function::ArcCosine, f64::acos),
        (Function::ArcTangent, f64::atan),
        (Function::HyperbolicSine, f64::sinh),
        (Function::HyperbolicCosine, f64::cosh),
        (Function::AreaSine, f64::asinh),
        (Function::AreaCosine, f64::acosh),
        (Function::AreaTangent, f64::atanh),
        (Function::Elu { alpha: 2.0, scale: 1.5, divisor: 2.0 }, |x| {
            if x > 0.0 { 1.5 * x } else { 3.0 * (x / 2.0).exp_m1() }
        }),
        (Function::Softplus, |x| x.exp().ln_1p()),
        (Function::Softsign, |x| x / (1.0 + x.abs())),
    ];

/// Functions that cancel somewhere, where they are accurate to a float's step at 1.
const ABSOLUTE: [(Function, Exact); 6] = [
    (Function::Activation(Activation::HardSigmoid { alpha: 0.2, beta: 0.5 }), |x| (0.2 * x + 0.5).clamp(0.0, 1.0)),
    (Function::Activation(Activation::HardSwish), |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
    (Function::Activation(Activation::GeluTanh), |x| {
        0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
    }),
    (Function::Mish, |x| x * x.exp().ln_1p().tanh()),
    (Function::ThresholdedRelu { threshold: 1.0 }, |x| if x > 1.0 { x } else { 0.0 }),
    (Function::Shrink { threshold: 0.5, bias: 0.25 }, |x| {
        if x > 0.5 {
            x - 0.25
        } else if x < -0.5 {
            x + 0.25
        } else {
            0.0
        }
    }),
];

fn close(found: f64, exact: f64, relative: f64, absolute: f64) -> bool {
    (found - exact).abs() <= exact.abs() * relative + absolute || found == exact || (found.is_nan() && exact.is_nan())
}

#[test]
fn every_function_agrees_with_its_definition_in_every_type() {
    let input: Vec<f32> = values(700, 5).iter().map(|x| x * 8.0).collect();
    let doubles: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
    let brains: Vec<bf16> = input.iter().map(|x| bf16::from_f32(*x)).collect();
    let step = f64::from(f32::EPSILON);
    let cases = RELATIVE.map(|(function, exact)| (function, exact, 1e-44)).into_iter();
    for (function, exact, absolute) in cases.chain(ABSOLUTE.map(|(function, exact)| (function, exact, 4.0 * step))) {
        for isa in instruction_sets() {
            for (x, y) in input.iter().zip(run(isa, function, Number::F32, &input)) {
                let exact = exact(f64::from(*x));
                assert!(close(f64::from(y), exact, 5.0 * step, absolute), "{function:?} of {x} is {y}, not {exact}");
            }
            for (x, y) in input.iter().zip(run(isa, function, Number::F16, &halves(&input))) {
                let exact = exact(f16::from_f32(*x).to_f64());
                assert!(close(y.to_f64(), exact, 6e-4, 2e-6), "{function:?} of {x} as half is {y}, not {exact}");
            }
            for (x, y) in brains.iter().zip(run(isa, function, Number::Bf16, &brains)) {
                assert!(close(y.to_f64(), exact(x.to_f64()), 5e-3, absolute), "{function:?} of {x} in bfloat16 is {y}");
            }
        }
        for (x, y) in doubles.iter().zip(run(Isa::detect(), function, Number::F64, &doubles)) {
            assert!(close(y, exact(*x), 1e-6, 1e-7), "{function:?} of {x} in double is {y}");
        }
    }
}

#[test]
fn gelu_is_its_definition_to_a_step_of_its_factor() {
    let input: Vec<f32> = values(700, 5).iter().map(|x| x * 8.0).collect();
    let doubles: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
    let function = Function::Activation(Activation::Gelu);
    let exact = run(Isa::detect(), function, Number::F64, &doubles);
    for isa in instruction_sets() {
        for ((x, y), exact) in input.iter().zip(run(isa, function, Number::F32, &input)).zip(&exact) {
            let bound = f64::from(x.abs()) * 2.0 * f64::from(f32::EPSILON);
            assert!((f64::from(y) - exact).abs() <= bound, "gelu of {x} is {y}, not {exact}");
        }
    }
    assert!((exact[0] - 0.5 * doubles[0] * (1.0 + erf_by_quadrature(doubles[0] / 2f64.sqrt()))).abs() < 1e-9);
}

/// Simpson's rule.
fn erf_by_quadrature(x: f64) -> f64 {
    let (steps, width) = (2000, x / 2000.0);
    let bell = |i: i32| (-(f64::from(i) * width).powi(2)).exp();
    let sum: f64 = (1..steps).map(|i| bell(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    2.0 / std::f64::consts::PI.sqrt() * width / 3.0 * (bell(0) + sum + bell(steps))
}

#[test]
fn an_element_gives_the_same_bits_wherever_it_lies() {
    let input: Vec<f32> = values(700, 5).iter().map(|x| x * 8.0).collect();
    for (function, _) in RELATIVE {
        let all = run(Isa::detect(), function, Number::F32, &input);
        for (index, x) in input.iter().enumerate() {
            let alone = run(Isa::detect(), function, Number::F32, &[*x])[0];
            assert!(alone.to_bits() == all[index].to_bits() || (alone.is_nan() && all[index].is_nan()), "{function:?}");
        }
    }
}

#[test]
fn integers_have_magnitude_negation_and_sign() {
    let input = [3i32, -4, 0, i32::MIN];
    assert_eq!(run(Isa::detect(), Function::Absolute, Number::I32, &input), [3, 4, 0, i32::MIN]);
    assert_eq!(run(Isa::detect(), Function::Negate, Number::I32, &input), [-3, 4, 0, i32::MIN]);
    assert_eq!(run(Isa::detect(), Function::Sign, Number::I32, &input), [1, -1, 0, -1]);
    assert_eq!(run(Isa::detect(), Function::Sign, Number::U8, &[0u8, 9]), [0, 1]);
    assert!(!Function::Exponential.is_for(Number::I64) && !Function::Absolute.is_for(Number::Bool));
}

#[test]
fn special_values_follow_the_standard() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    for isa in instruction_sets() {
        let run = |function, x: f32| run(isa, function, Number::F32, &[x; 9])[8];
        for (function, _) in RELATIVE.iter().chain(&ABSOLUTE) {
            assert!(run(*function, nan).is_nan(), "{function:?}");
        }
        assert_eq!(run(Function::Activation(Activation::Relu), -infinity), 0.0);
        assert_eq!(run(Function::Activation(Activation::Gelu), infinity), infinity);
        assert_eq!(run(Function::Softplus, 500.0), 500.0);
        assert_eq!(run(Function::Softplus, infinity), infinity);
        assert_eq!(run(Function::Mish, 1e30), 1e30);
        assert_eq!(run(Function::Round, 2.5), 2.0);
        assert_eq!(run(Function::Round, -0.5).to_bits(), (-0.0f32).to_bits());
        assert_eq!(run(Function::Reciprocal, -0.0), -infinity);
    }
}
