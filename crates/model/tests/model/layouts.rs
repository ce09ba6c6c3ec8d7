//! Images stay channels last between the borders, and what moves elements is left out wherever it can be.

use insula_model::onnx::data_type::{FLOAT, INT64};
use insula_model::op::{ArgExtreme, Reduce, Reduction};
use insula_model::{Op, Source};

use crate::builder::*;
use crate::loading::{assert_optimised_alike, load, operations};

fn conv(builder: Builder, from: &str, to: &str, channels: [i64; 2]) -> Builder {
    let weight = format!("{to}_w");
    builder.random_floats(&weight, &[channels[1], channels[0], 3, 3], 1).node(
        "Conv",
        &[from, &weight],
        to,
        vec![ints("pads", &[1, 1, 1, 1])],
    )
}

#[test]
fn one_channel_needs_no_transposition() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,1,8,8"), "x", "a", [1, 2]);
    let builder =
        builder.node("GlobalAveragePool", &["a"], "p", vec![]).node("Flatten", &["p"], "y", vec![]).untyped_output("y");
    let plan = assert_optimised_alike(&builder, 3, 1e-5);
    assert_eq!(operations(&plan), ["Conv", "ReduceMean"]);
    assert_eq!(plan.steps[0].inputs[0].shape.dims(), [3, 8, 8, 1]);
    assert!(matches!(plan.steps[0].inputs[0].source, Source::Input(0)));
    assert_eq!(
        plan.steps[1].op,
        Op::Reduce(Reduce { reduction: Reduction::Mean, axes: [1, 2].into_iter().collect(), keep_dims: true })
    );
}

#[test]
fn a_chain_of_image_operators_is_transposed_once_on_the_way_in_and_once_on_the_way_out() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,3,6,6"), "x", "a", [3, 4]);
    let builder = builder
        .node("Relu", &["a"], "b", vec![])
        .node("MaxPool", &["b"], "c", vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])])
        .random_floats("map", &[4, 3, 3], 5)
        .node("Mul", &["c", "map"], "d", vec![])
        .node("Softmax", &["d"], "e", vec![int("axis", 1)])
        .node("AveragePool", &["e"], "f", vec![ints("kernel_shape", &[2, 2])]);
    let builder = conv(builder, "f", "y", [4, 2]).untyped_output("y");
    let plan = assert_optimised_alike(&builder, 2, 1e-5);
    assert_eq!(
        operations(&plan),
        ["Transpose", "Conv", "MaxPool", "Mul", "Softmax", "AveragePool", "Conv", "Transpose"]
    );
    assert_eq!(plan.steps[4].op, Op::Softmax { axis: 3, logarithm: false });
}

#[test]
fn a_flattened_image_goes_into_a_product_whose_rows_were_permuted() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,1,4,4"), "x", "a", [1, 3]);
    let builder = builder
        .node("Flatten", &["a"], "flat", vec![])
        .random_floats("w", &[5, 48], 3)
        .node("Gemm", &["flat", "w"], "y", vec![int("transB", 1)])
        .untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 3, 1e-5)), ["Conv", "MatMul"]);
}

#[test]
fn two_products_of_one_flattened_image_both_do_without_the_transposition() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,1,4,4"), "x", "a", [1, 3]);
    let builder = builder
        .node("Flatten", &["a"], "flat", vec![])
        .random_floats("w", &[48, 5], 3)
        .random_floats("v", &[48, 2], 4)
        .node("MatMul", &["flat", "w"], "y", vec![])
        .node("MatMul", &["flat", "v"], "z", vec![])
        .untyped_output("y")
        .untyped_output("z");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv", "MatMul", "MatMul"]);
}

#[test]
fn a_flattened_image_that_is_an_output_is_in_the_files_order() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,1,4,4"), "x", "a", [1, 3]);
    let builder = builder.node("Flatten", &["a"], "y", vec![]).untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv", "Transpose"]);
}

#[test]
fn the_best_class_of_each_pixel_is_found_among_the_last_axis() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,1,4,4"), "x", "a", [1, 3]);
    let builder =
        builder.node("ArgMax", &["a"], "y", vec![int("axis", 1), int("keepdims", 0)]).output("y", INT64, "N,4,4");
    let plan = assert_optimised_alike(&builder, 2, 0.0);
    assert_eq!(operations(&plan), ["Conv", "ArgMax"]);
    assert_eq!(
        plan.steps[1].op,
        Op::ArgExtreme(ArgExtreme { largest: true, axis: 3, keep_dims: false, select_last_index: false })
    );
}

#[test]
fn integers_are_never_transposed() {
    let builder = conv(Builder::new(15).input("x", FLOAT, "N,1,4,4"), "x", "a", [1, 3]);
    let builder = builder
        .node("ArgMax", &["a"], "y", vec![int("axis", 2), int("keepdims", 0)])
        .node("Cast", &["a"], "z", vec![int("to", 6)])
        .untyped_output("y")
        .untyped_output("z");
    let plan = assert_optimised_alike(&builder, 2, 0.0);
    let moved = plan.steps.iter().filter(|step| matches!(step.op, Op::Transpose { .. }));
    assert!(moved.clone().count() > 0 && moved.clone().all(|step| step.inputs[0].dtype == insula_core::DType::Fp32));
}

#[test]
fn means_over_any_axes_of_an_image_are_the_same() {
    for axes in [&[1][..], &[2], &[3], &[1, 2], &[2, 3], &[1, 3], &[1, 2, 3]] {
        for keep_dims in [0, 1] {
            let builder = conv(Builder::new(13).input("x", FLOAT, "N,2,3,4"), "x", "a", [2, 3]);
            let builder = builder
                .node("ReduceMean", &["a"], "y", vec![ints("axes", axes), int("keepdims", keep_dims)])
                .untyped_output("y");
            assert_optimised_alike(&builder, 2, 1e-5);
        }
    }
}

#[test]
fn transpositions_that_undo_each_other_are_gone() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,2,3,4")
        .node("Transpose", &["x"], "a", vec![ints("perm", &[0, 2, 3, 1])])
        .node("Relu", &["a"], "b", vec![])
        .node("Transpose", &["b"], "y", vec![ints("perm", &[0, 3, 1, 2])])
        .untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 0.0)), ["Relu"]);
}

#[test]
fn views_in_a_row_are_one() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,2,6")
        .ints("one", &[3], &[0, 3, 4])
        .ints("two", &[1], &[2])
        .node("Reshape", &["x", "one"], "a", vec![])
        .node("Flatten", &["a"], "b", vec![])
        .node("Unsqueeze", &["b", "two"], "c", vec![])
        .node("Relu", &["c"], "y", vec![])
        .untyped_output("y");
    let plan = load(&builder).logical_plan(2).unwrap();
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.steps[0].inputs[0].shape.dims(), [2, 12, 1]);
    assert!(matches!(plan.steps[0].inputs[0].source, Source::Input(0)));
}

#[test]
fn joined_cut_padded_and_resized_images_stay_channels_last() {
    let builder = conv(Builder::new(13).input("x", FLOAT, "N,1,4,4"), "x", "a", [1, 3]);
    let builder = conv(builder, "a", "b", [3, 2])
        .node("Concat", &["a", "b"], "joined", vec![int("axis", 1)])
        .ints("pads", &[8], &[0, 0, 1, 0, 0, 1, 0, 2])
        .node("Pad", &["joined", "pads"], "padded", vec![]);
    let builder = conv(builder, "padded", "c", [6, 4])
        .floats("scales", &[4], &[1.0, 1.0, 2.0, 3.0])
        .node(
            "Resize",
            &["c", "", "scales"],
            "resized",
            vec![text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "floor")],
        )
        .ints("starts", &[2], &[1, 9])
        .ints("ends", &[2], &[4, i64::MIN])
        .ints("axes", &[2], &[1, 2])
        .ints("steps", &[2], &[1, -2])
        .node("Slice", &["resized", "starts", "ends", "axes", "steps"], "cut", vec![]);
    let builder = conv(builder, "cut", "d", [3, 2]);
    let builder =
        builder.node("GlobalAveragePool", &["d"], "p", vec![]).node("Flatten", &["p"], "y", vec![]).untyped_output("y");
    let operations = operations(&assert_optimised_alike(&builder, 2, 1e-4));
    assert!(!operations.contains(&"Transpose"), "{operations:?}");
    assert!(["Concat", "Pad", "Resize", "Slice"].iter().all(|name| operations.contains(name)), "{operations:?}");
}
