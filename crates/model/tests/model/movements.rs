//! Operators that move elements, on numbers worked out by hand.

use insula_model::onnx::data_type::{FLOAT, INT64};
use insula_model::{LoadErrorKind, LoadOptions, Model, NoExternalData};

use crate::builder::*;
use crate::interpreter::{Folder, Tensor};
use crate::loading::infer;

fn numbers(dims: &[usize]) -> Tensor {
    Tensor::new(dims, (0..dims.iter().product()).map(|k| k as f64).collect())
}

/// The output `y` for one row `0, 1, 2, ..`.
fn one(builder: Builder, dims: &[usize]) -> Tensor {
    infer(&builder.untyped_output("y"), 1, &[numbers(dims)]).remove(0)
}

#[test]
fn slices_count_from_the_end_and_backwards() {
    let slice = |start: i64, end: i64, step: i64| {
        let builder = Builder::new(13)
            .input("x", FLOAT, "N,6")
            .ints("starts", &[1], &[start])
            .ints("ends", &[1], &[end])
            .ints("axes", &[1], &[-1])
            .ints("steps", &[1], &[step]);
        one(builder.node("Slice", &["x", "starts", "ends", "axes", "steps"], "y", vec![]), &[1, 6]).data
    };
    assert_eq!(slice(1, 4, 1), [1.0, 2.0, 3.0]);
    assert_eq!(slice(-2, i64::MAX, 1), [4.0, 5.0]);
    assert_eq!(slice(-1, i64::MIN, -2), [5.0, 3.0, 1.0]);
    assert_eq!(slice(100, 1, -3), [5.0, 2.0]);
    assert_eq!(slice(i64::MIN, 2, i64::MAX), [0.0]);
    assert_eq!(slice(0, 6, 1), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn before_opset_10_a_slice_has_attributes() {
    let attributes = vec![ints("starts", &[1]), ints("ends", &[3]), ints("axes", &[1])];
    assert_eq!(
        one(Builder::new(9).input("x", FLOAT, "N,4").node("Slice", &["x"], "y", attributes), &[1, 4]).data,
        [1.0, 2.0]
    );
}

#[test]
fn a_split_has_several_outputs() {
    let mut builder = Builder::new(13).input("x", FLOAT, "N,5").ints("sizes", &[3], &[2, 1, 2]).node(
        "Split",
        &["x", "sizes"],
        "a",
        vec![int("axis", 1)],
    );
    builder.graph().node[0].output.extend(["b".to_string(), "c".to_string()]);
    let builder = builder.node("Concat", &["c", "a"], "y", vec![int("axis", -1)]);
    assert_eq!(one(builder, &[1, 5]).data, [3.0, 4.0, 0.0, 1.0]);
}

#[test]
fn a_tile_repeats_every_axis() {
    let builder = Builder::new(13).input("x", FLOAT, "N,1,2").ints("repeats", &[3], &[1, 2, 2]);
    let tiled = one(builder.node("Tile", &["x", "repeats"], "y", vec![]), &[1, 1, 2]);
    assert_eq!((tiled.dims, tiled.data), (vec![1, 2, 4], [0.0, 1.0].repeat(4)));
}

#[test]
fn negative_pads_cut() {
    let builder = Builder::new(13).input("x", FLOAT, "N,4").ints("pads", &[4], &[0, -1, 0, 2]).floats("v", &[], &[9.0]);
    assert_eq!(one(builder.node("Pad", &["x", "pads", "v"], "y", vec![]), &[1, 4]).data, [1.0, 2.0, 3.0, 9.0, 9.0]);
}

#[test]
fn images_and_depth_turn_into_each_other() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,4,1,2")
        .node("DepthToSpace", &["x"], "d", vec![int("blocksize", 2)])
        .node("SpaceToDepth", &["d"], "y", vec![int("blocksize", 2)]);
    assert_eq!(one(builder, &[1, 4, 1, 2]), numbers(&[1, 4, 1, 2]));
    let builder =
        Builder::new(13).input("x", FLOAT, "N,4,1,2").node("DepthToSpace", &["x"], "y", vec![int("blocksize", 2)]);
    assert_eq!(one(builder, &[1, 4, 1, 2]).data, [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
}

#[test]
fn indices_of_rows_pick_from_a_table() {
    let builder = Builder::new(13).input("x", INT64, "N,2").floats("table", &[3, 2], &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
    let builder = builder.node("Gather", &["table", "x"], "y", vec![]).untyped_output("y");
    let found = infer(&builder, 2, &[Tensor::new(&[2, 2], vec![2.0, 0.0, 1.0, -1.0])]).remove(0);
    assert_eq!((found.dims, found.data), (vec![2, 2, 2], vec![2.0, 2.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5]));
}

/// How many rows a batch may have.
fn rows(builder: Builder) -> Result<usize, LoadErrorKind> {
    let options = LoadOptions::new(&Folder);
    let model = Model::load(builder.untyped_output("y").bytes(), &NoExternalData, &options);
    model.map(|model| model.max_rows()).map_err(|error| error.kind())
}

#[test]
fn what_would_mix_rows_is_not_batched() {
    let builder = || Builder::new(13).input("x", FLOAT, "N,2").ints("first", &[1], &[0]).ints("end", &[1], &[1]);
    let concat = |axis| builder().node("Concat", &["x", "x"], "y", vec![int("axis", axis)]);
    assert_eq!(rows(concat(1)), Ok(32));
    assert_ne!(rows(concat(0)), Ok(32));
    let slice =
        |axes: i64| builder().ints("axes", &[1], &[axes]).node("Slice", &["x", "first", "end", "axes"], "y", vec![]);
    assert_eq!(rows(slice(1)), Ok(32));
    assert_ne!(rows(slice(0)), Ok(32));
    let gather = |axis| builder().node("Gather", &["x", "first"], "y", vec![int("axis", axis)]);
    assert_eq!(rows(gather(1)), Ok(32));
    assert_ne!(rows(gather(0)), Ok(32));
}

#[test]
fn a_tensor_without_elements_is_moved_and_nothing_else() {
    let empty = |operator: &str| {
        Builder::new(13)
            .input("x", FLOAT, "N,4")
            .ints("from", &[1], &[7])
            .ints("to", &[1], &[9])
            .ints("axes", &[1], &[1])
            .node("Slice", &["x", "from", "to", "axes"], "nothing", vec![])
            .node(operator, &["nothing"], "same", vec![])
            .node("Concat", &["same", "x"], "y", vec![int("axis", 1)])
    };
    assert_eq!(one(empty("Identity"), &[1, 4]).data, [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(rows(empty("Softmax")), Err(LoadErrorKind::Unsupported));
}
