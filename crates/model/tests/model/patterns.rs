//! Functions written out in several nodes become one operation, and compute the same.

use insula_model::onnx::data_type::FLOAT;

use crate::builder::*;
use crate::loading::{assert_optimised_alike, operations};

fn start() -> Builder {
    Builder::new(17)
        .input("x", FLOAT, "N,6")
        .floats("half", &[], &[0.5])
        .floats("one", &[], &[1.0])
        .floats("two", &[], &[2.0])
        .floats("three", &[], &[3.0])
        .floats("root", &[], &[std::f32::consts::SQRT_2])
}

fn assert_is(builder: Builder, expected: &[&str]) {
    let plan = assert_optimised_alike(&builder.untyped_output("y"), 2, 1e-5);
    assert_eq!(operations(&plan), expected);
}

#[test]
fn the_exact_gelu_is_found_in_every_order() {
    let erf = || {
        start().node("Div", &["x", "root"], "a", vec![]).node("Erf", &["a"], "b", vec![]).node(
            "Add",
            &["b", "one"],
            "c",
            vec![],
        )
    };
    let last_half = erf().node("Mul", &["x", "c"], "d", vec![]).node("Mul", &["d", "half"], "y", vec![]);
    assert_is(last_half, &["Gelu"]);
    let first_half = erf().node("Mul", &["x", "half"], "d", vec![]).node("Mul", &["d", "c"], "y", vec![]);
    assert_is(first_half, &["Gelu"]);
    let inner_half = erf().node("Mul", &["half", "c"], "d", vec![]).node("Mul", &["x", "d"], "y", vec![]);
    assert_is(inner_half, &["Gelu"]);
    let divided = erf().node("Mul", &["x", "c"], "d", vec![]).node("Div", &["d", "two"], "y", vec![]);
    assert_is(divided, &["Gelu"]);
    let other = erf().node("Mul", &["x", "c"], "d", vec![]).node("Mul", &["d", "two"], "y", vec![]);
    assert_is(other, &["Div", "Erf", "Add", "Mul", "Mul"]);
}

#[test]
fn the_approximate_gelu_is_found() {
    let builder = start()
        .floats("cubic", &[], &[0.044715])
        .floats("scale", &[], &[0.797_884_6])
        .node("Pow", &["x", "three"], "a", vec![])
        .node("Mul", &["a", "cubic"], "b", vec![])
        .node("Add", &["x", "b"], "c", vec![])
        .node("Mul", &["c", "scale"], "d", vec![])
        .node("Tanh", &["d"], "e", vec![])
        .node("Add", &["e", "one"], "f", vec![])
        .node("Mul", &["x", "f"], "g", vec![])
        .node("Mul", &["g", "half"], "y", vec![]);
    assert_is(builder, &["Gelu"]);
}

#[test]
fn swish_and_hard_swish_are_found() {
    let swish = start().node("Sigmoid", &["x"], "a", vec![]).node("Mul", &["a", "x"], "y", vec![]);
    assert_is(swish, &["Swish"]);
    let hard = start().node("HardSigmoid", &["x"], "a", vec![float("alpha", 1.0 / 6.0), float("beta", 0.5)]).node(
        "Mul",
        &["x", "a"],
        "y",
        vec![],
    );
    assert_is(hard, &["HardSwish"]);
    let clipped = start()
        .floats("zero", &[], &[0.0])
        .floats("six", &[], &[6.0])
        .node("Add", &["x", "three"], "a", vec![])
        .node("Clip", &["a", "zero", "six"], "b", vec![])
        .node("Mul", &["x", "b"], "c", vec![])
        .node("Div", &["c", "six"], "y", vec![]);
    assert_is(clipped, &["HardSwish"]);
    let steep = start().node("Sigmoid", &["x"], "a", vec![]).node("Mul", &["a", "half"], "y", vec![]);
    assert_is(steep, &["Sigmoid", "Mul"]);
}

#[test]
fn layer_normalisation_is_found_with_its_factor_and_summand() {
    let last = || vec![ints("axes", &[-1])];
    let normal = |square: &str, operands: &[&str]| {
        start()
            .floats("epsilon", &[], &[1e-5])
            .random_floats("scale", &[6], 3)
            .random_floats("bias", &[6], 4)
            .node("ReduceMean", &["x"], "mean", last())
            .node("Sub", &["x", "mean"], "centred", vec![])
            .node(square, operands, "square", vec![])
            .node("ReduceMean", &["square"], "variance", last())
            .node("Add", &["variance", "epsilon"], "sum", vec![])
            .node("Sqrt", &["sum"], "deviation", vec![])
            .node("Div", &["centred", "deviation"], "normal", vec![])
    };
    for builder in [normal("Pow", &["centred", "two"]), normal("Mul", &["centred", "centred"])] {
        let builder =
            builder.node("Mul", &["normal", "scale"], "scaled", vec![]).node("Add", &["bias", "scaled"], "y", vec![]);
        assert_is(builder, &["LayerNormalization"]);
    }
    let read_twice = normal("Pow", &["centred", "two"]).node("Mul", &["normal", "scale"], "scaled", vec![]).node(
        "Add",
        &["normal", "scaled"],
        "y",
        vec![],
    );
    assert_is(read_twice, &["LayerNormalization", "Mul", "Add"]);
}
