//! Sizes that exporters take from a batched tensor's shape and compute with, up to where they are used.

use insula_model::onnx::data_type::FLOAT;

use crate::builder::*;
use crate::interpreter::Tensor;
use crate::loading::{infer, load};

/// The output's dimensions for two rows of `x`, `[N, 2, 3]`.
fn dims(builder: Builder) -> Vec<usize> {
    let builder = builder.untyped_output("y");
    assert!(load(&builder).signature().batched, "its rows are kept apart");
    infer(&builder, 2, &[Tensor::new(&[2, 2, 3], (0..12).map(f64::from).collect())]).remove(0).dims
}

fn shape_of_x() -> Builder {
    Builder::new(13).input("x", FLOAT, "N,2,3").node("Shape", &["x"], "shape", vec![])
}

#[test]
fn as_pytorch_exports_them() {
    let builder = shape_of_x()
        .ints("zero", &[], &[0])
        .ints("axes", &[1], &[0])
        .ints("six", &[1], &[6])
        .node("Gather", &["shape", "zero"], "rows", vec![])
        .node("Unsqueeze", &["rows", "axes"], "rows_1", vec![])
        .node("Concat", &["rows_1", "six"], "target", vec![int("axis", 0)])
        .node("Reshape", &["x", "target"], "y", vec![]);
    assert_eq!(dims(builder), [2, 6]);
}

#[test]
fn as_paddle_exports_them() {
    let builder = shape_of_x()
        .node("Cast", &["shape"], "narrow", vec![int("to", 6)])
        .ints("start", &[1], &[0])
        .ints("end", &[1], &[1])
        .ints("rest", &[1], &[-1])
        .node("Slice", &["narrow", "start", "end"], "rows", vec![])
        .node("Cast", &["rows"], "wide", vec![int("to", 7)])
        .node("Concat", &["wide", "rest"], "target", vec![int("axis", 0)])
        .node("Reshape", &["x", "target"], "y", vec![]);
    assert_eq!(dims(builder), [2, 6]);
}

#[test]
fn a_filled_tensor_has_the_rows_of_the_batch() {
    let builder = shape_of_x().node("ConstantOfShape", &["shape"], "zeros", vec![]).node(
        "Concat",
        &["x", "zeros"],
        "y",
        vec![int("axis", 1)],
    );
    assert_eq!(dims(builder), [2, 4, 3]);
}
