//! Each operator in each opset whose semantics differ, on numbers worked out by hand.

use insula_model::onnx::data_type::{FLOAT, FLOAT16, INT32, INT64};
use insula_model::onnx::{AttributeProto, TensorProto, data_type};

use crate::builder::*;
use crate::interpreter::Tensor;
use crate::loading::{infer, infer_class, load, open};

/// The output of one node on one row `x`.
fn one(builder: Builder, dims: &[usize], x: &[f64]) -> Vec<f64> {
    infer(&builder.untyped_output("y"), 1, &[Tensor::new(dims, x.to_vec())]).remove(0).data
}

fn unary(opset: i64, op_type: &str, x: &[f64], attributes: Vec<AttributeProto>) -> Vec<f64> {
    let builder = Builder::new(opset).input("x", FLOAT, &format!("N,{}", x.len()));
    one(builder.node(op_type, &["x"], "y", attributes), &[1, x.len()], x)
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} where {expected} was expected");
    }
}

fn image(values: &[f64], operator: &str, opset: i64, attributes: Vec<AttributeProto>) -> Tensor {
    let builder =
        Builder::new(opset).input("x", FLOAT, "N,1,3,3").node(operator, &["x"], "y", attributes).untyped_output("y");
    infer(&builder, 1, &[Tensor::new(&[1, 1, 3, 3], values.to_vec())]).remove(0)
}

const NINE: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

#[test]
fn activations() {
    assert_eq!(unary(14, "Relu", &[-1.0, 2.0], vec![]), [0.0, 2.0]);
    assert_close(&unary(13, "Sigmoid", &[0.0, 2.0], vec![]), &[0.5, 1.0 / (1.0 + (-2f64).exp())]);
    assert_close(&unary(13, "Tanh", &[0.5], vec![]), &[0.5f64.tanh()]);
}

#[test]
fn clip_takes_attributes_before_opset_11_and_inputs_after() {
    assert_eq!(unary(7, "Clip", &[-5.0, 0.5, 9.0], vec![float("min", -1.0), float("max", 6.0)]), [-1.0, 0.5, 6.0]);
    assert_eq!(unary(7, "Clip", &[-5.0, 9.0], vec![]), [-5.0, 9.0]);
    let clip = |inputs: &[&str]| {
        let builder =
            Builder::new(13).input("x", FLOAT, "N,3").floats("low", &[], &[-1.0]).floats("high", &[1], &[6.0]);
        one(builder.node("Clip", inputs, "y", vec![]), &[1, 3], &[-5.0, 0.5, 9.0])
    };
    assert_eq!(clip(&["x", "low", "high"]), [-1.0, 0.5, 6.0]);
    assert_eq!(clip(&["x", "", "high"]), [-5.0, 0.5, 6.0]);
    assert_eq!(clip(&["x", "low"]), [-1.0, 0.5, 9.0]);
}

#[test]
fn arithmetic_broadcasts() {
    let compute = |operator: &str| {
        let builder = Builder::new(14).input("x", FLOAT, "N,2,1").floats("w", &[2], &[2.0, 4.0]);
        one(builder.node(operator, &["x", "w"], "y", vec![]), &[1, 2, 1], &[1.0, 8.0])
    };
    assert_eq!(compute("Add"), [3.0, 5.0, 10.0, 12.0]);
    assert_eq!(compute("Sub"), [-1.0, -3.0, 6.0, 4.0]);
    assert_eq!(compute("Mul"), [2.0, 4.0, 16.0, 32.0]);
    assert_eq!(compute("Div"), [0.5, 0.25, 4.0, 2.0]);
}

#[test]
fn softmax_runs_along_the_last_axis_from_opset_13_and_over_all_from_axis_1_before() {
    let x = [0.0, 0.0, 0.0, 3f64.ln()];
    let softmax = |opset, attributes| {
        let builder = Builder::new(opset).input("x", FLOAT, "N,2,2").node("Softmax", &["x"], "y", attributes);
        one(builder, &[1, 2, 2], &x)
    };
    assert_close(&softmax(13, vec![]), &[0.5, 0.5, 0.25, 0.75]);
    assert_close(&softmax(11, vec![]), &[1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 0.5]);
    assert_close(&softmax(11, vec![int("axis", 2)]), &[0.5, 0.5, 0.25, 0.75]);
    assert_close(&softmax(11, vec![int("axis", -1)]), &[0.5, 0.5, 0.25, 0.75]);
    assert_close(&softmax(11, vec![int("axis", 3)]), &[1.0; 4]);
    assert_close(&softmax(13, vec![int("axis", 1)]), &[0.5, 0.25, 0.5, 0.75]);
}

#[test]
fn arg_max_takes_the_first_or_the_last_of_equals() {
    let arg_max = |opset, attributes| unary(opset, "ArgMax", &[1.0, 3.0, 3.0, 2.0], attributes);
    assert_eq!(arg_max(13, vec![int("axis", 1)]), [1.0]);
    assert_eq!(arg_max(13, vec![int("axis", -1), int("select_last_index", 1), int("keepdims", 0)]), [2.0]);
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,4")
        .node("ArgMax", &["x"], "y", vec![int("axis", 1)])
        .output("y", INT64, "N,1");
    load(&builder);
}

#[test]
fn reduce_mean_takes_its_axes_as_attribute_before_opset_18_and_as_input_after() {
    let x = [1.0, 2.0, 3.0, 6.0];
    let before = |attributes| {
        one(Builder::new(13).input("x", FLOAT, "N,2,2").node("ReduceMean", &["x"], "y", attributes), &[1, 2, 2], &x)
    };
    assert_eq!(before(vec![ints("axes", &[1])]), [2.0, 4.0]);
    assert_eq!(before(vec![ints("axes", &[-1, 1]), int("keepdims", 0)]), [3.0]);
    let after = |inputs: &[&str], attributes| {
        let builder = Builder::new(18).input("x", FLOAT, "N,2,2").ints("axes", &[1], &[2]).ints("none", &[0], &[]);
        one(builder.node("ReduceMean", inputs, "y", attributes), &[1, 2, 2], &x)
    };
    assert_eq!(after(&["x", "axes"], vec![]), [1.5, 4.5]);
    assert_eq!(after(&["x"], vec![int("noop_with_empty_axes", 1)]), x);
    assert_eq!(after(&["x", "none"], vec![int("noop_with_empty_axes", 1)]), x);
    let all = Builder::new(18).input("x", FLOAT, "2,2").node("ReduceMean", &["x"], "y", vec![int("keepdims", 0)]);
    assert_eq!(one(all, &[2, 2], &x), [3.0]);
}

#[test]
fn gemm_with_all_its_attributes() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,2")
        .floats("b", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .floats("c", &[1, 3], &[1.0, 10.0, 100.0]);
    let attributes = vec![float("alpha", 2.0), float("beta", 0.5), int("transB", 1)];
    assert_eq!(
        one(builder.clone().node("Gemm", &["x", "b", "c"], "y", attributes), &[1, 2], &[1.0, 1.0]),
        [6.5, 19.0, 72.0]
    );
    assert_eq!(
        one(builder.node("Gemm", &["x", "b"], "y", vec![int("transB", 1)]), &[1, 2], &[1.0, 1.0]),
        [3.0, 7.0, 11.0]
    );
    let fixed = Builder::new(13).input("x", FLOAT, "2,1").floats("b", &[2, 1], &[3.0, 4.0]);
    assert_eq!(one(fixed.node("Gemm", &["x", "b"], "y", vec![int("transA", 1)]), &[2, 1], &[1.0, 2.0]), [11.0]);
}

#[test]
fn matmul_of_every_rank() {
    let with = |x: &str, w: &[i64], inputs: &[&str], dims: &[usize]| {
        let count = dims.iter().product::<usize>();
        let values: Vec<f32> = (1..=w.iter().product::<i64>()).map(|value| value as f32).collect();
        let builder = Builder::new(13)
            .input("x", FLOAT, x)
            .floats("w", w, &values)
            .node("MatMul", inputs, "y", vec![])
            .untyped_output("y");
        let x: Vec<f64> = (1..=count).map(|value| value as f64).collect();
        infer(&builder, 1, &[Tensor::new(dims, x)]).remove(0)
    };
    assert_eq!(with("N,2", &[2, 2], &["x", "w"], &[1, 2]), Tensor::new(&[1, 2], vec![7.0, 10.0]));
    assert_eq!(with("N,1,2", &[2, 2], &["x", "w"], &[1, 1, 2]), Tensor::new(&[1, 1, 2], vec![7.0, 10.0]));
    assert_eq!(with("N,2,1,2", &[2, 2, 1], &["x", "w"], &[1, 2, 1, 2]), Tensor::new(&[1, 2, 1, 1], vec![5.0, 25.0]));
    assert_eq!(with("N,2", &[2], &["x", "w"], &[1, 2]), Tensor::new(&[1], vec![5.0]));
    assert_eq!(with("N,2,1", &[2], &["w", "x"], &[1, 2, 1]), Tensor::new(&[1, 1], vec![5.0]));
    assert_eq!(with("2", &[2], &["x", "w"], &[2]), Tensor::new(&[], vec![5.0]));
    let both =
        Builder::new(13).input("x", FLOAT, "N,1,2").node("Transpose", &["x"], "t", vec![ints("perm", &[0, 2, 1])]);
    assert_eq!(one(both.node("MatMul", &["x", "t"], "y", vec![]), &[1, 1, 2], &[3.0, 4.0]), [25.0]);
}

#[test]
fn conv_with_padding_stride_dilation_groups_and_bias() {
    let conv = |attributes| {
        let builder =
            Builder::new(11).input("x", FLOAT, "N,1,3,3").floats("w", &[1, 1, 2, 2], &[1.0, 10.0, 100.0, 1000.0]);
        let builder =
            builder.floats("b", &[1], &[0.5]).node("Conv", &["x", "w", "b"], "y", attributes).untyped_output("y");
        infer(&builder, 1, &[Tensor::new(&[1, 1, 3, 3], NINE.to_vec())]).remove(0)
    };
    assert_eq!(conv(vec![]), Tensor::new(&[1, 1, 2, 2], vec![5421.5, 6532.5, 8754.5, 9865.5]));
    assert_eq!(conv(vec![ints("strides", &[2, 2])]).data, [5421.5]);
    assert_eq!(conv(vec![ints("dilations", &[2, 2])]).data, [9731.5]);
    assert_eq!(
        conv(vec![ints("pads", &[1, 0, 0, 0]), ints("strides", &[2, 1])]).data,
        [2100.5, 3200.5, 8754.5, 9865.5]
    );
    assert_eq!(conv(vec![text("auto_pad", "VALID")]).dims, [1, 1, 2, 2]);
    assert_eq!(conv(vec![text("auto_pad", "SAME_UPPER")]).data[8], 9.5);
    assert_eq!(conv(vec![text("auto_pad", "SAME_LOWER")]).data[0], 1000.5);
    let depthwise = Builder::new(11).input("x", FLOAT, "N,2,1,1").floats("w", &[2, 1, 1, 1], &[3.0, 5.0]);
    assert_eq!(
        one(depthwise.node("Conv", &["x", "w"], "y", vec![int("group", 2)]), &[1, 2, 1, 1], &[1.0, 2.0]),
        [3.0, 10.0]
    );
}

#[test]
fn poolings() {
    let two = || ints("kernel_shape", &[2, 2]);
    assert_eq!(image(&NINE, "MaxPool", 12, vec![two()]).data, [5.0, 6.0, 8.0, 9.0]);
    assert_eq!(image(&NINE, "MaxPool", 12, vec![two(), ints("strides", &[2, 2])]).data, [5.0]);
    assert_eq!(
        image(&NINE, "MaxPool", 12, vec![two(), ints("strides", &[2, 2]), int("ceil_mode", 1)]).data,
        [5.0, 6.0, 8.0, 9.0]
    );
    assert_eq!(image(&NINE, "MaxPool", 12, vec![two(), ints("dilations", &[2, 2])]).data, [9.0]);
    let negative: Vec<f64> = NINE.iter().map(|value| -value).collect();
    let padded = vec![two(), ints("pads", &[1, 1, 0, 0]), ints("strides", &[2, 2])];
    assert_eq!(image(&negative, "MaxPool", 8, padded.clone()).data, [-1.0, -2.0, -4.0, -5.0]);
    assert_eq!(image(&NINE, "AveragePool", 11, padded.clone()).data, [1.0, 2.5, 5.5, 7.0]);
    let counted = [padded, vec![int("count_include_pad", 1)]].concat();
    assert_eq!(image(&NINE, "AveragePool", 11, counted).data, [0.25, 1.25, 2.75, 7.0]);
    let ceiled = vec![two(), ints("strides", &[2, 2]), int("ceil_mode", 1)];
    assert_eq!(image(&NINE, "AveragePool", 11, ceiled).data, [3.0, 4.5, 7.5, 9.0]);
    assert_eq!(image(&NINE, "GlobalAveragePool", 7, vec![]), Tensor::new(&[1, 1, 1, 1], vec![5.0]));
}

#[test]
fn a_window_that_would_begin_in_the_far_padding_is_left_out() {
    let attributes =
        vec![ints("kernel_shape", &[2, 2]), ints("strides", &[4, 4]), ints("pads", &[0, 0, 1, 1]), int("ceil_mode", 1)];
    assert_eq!(image(&NINE, "MaxPool", 12, attributes).dims, [1, 1, 1, 1]);
}

#[test]
fn batch_normalisation_of_images_and_of_rows() {
    let norm = |dims: &str, shape: &[usize], x: &[f64]| {
        let builder = Builder::new(9)
            .input("x", FLOAT, dims)
            .floats("scale", &[2], &[2.0, 1.0])
            .floats("bias", &[2], &[0.5, 0.0])
            .floats("mean", &[2], &[1.0, 2.0])
            .floats("variance", &[2], &[3.0, 15.0]);
        let inputs = ["x", "scale", "bias", "mean", "variance"];
        one(
            builder.node("BatchNormalization", &inputs, "y", vec![float("epsilon", 1.0), float("momentum", 0.5)]),
            shape,
            x,
        )
    };
    assert_close(&norm("N,2,1,2", &[1, 2, 1, 2], &[1.0, 3.0, 2.0, 6.0]), &[0.5, 2.5, 0.0, 1.0]);
    assert_close(&norm("N,2", &[1, 2], &[3.0, 6.0]), &[2.5, 1.0]);
    assert_close(&norm("N,2,2", &[1, 2, 2], &[1.0, 3.0, 2.0, 6.0]), &[0.5, 2.5, 0.0, 1.0]);
}

#[test]
fn shapes_are_changed_without_moving_elements() {
    let x: Vec<f64> = (0..6).map(f64::from).collect();
    let reshaped = |opset, operator: &str, inputs: &[&str], attributes| {
        let builder = Builder::new(opset)
            .input("x", FLOAT, "N,1,2,3")
            .ints("copy", &[3], &[0, -1, 2])
            .ints("rest", &[3], &[-1, 3, 2])
            .ints("one", &[1], &[1])
            .ints("ends", &[2], &[-1, 1]);
        let builder = builder.node(operator, inputs, "y", attributes).untyped_output("y");
        let output = infer(&builder, 1, &[Tensor::new(&[1, 1, 2, 3], x.clone())]).remove(0);
        assert_eq!(output.data, x);
        output.dims
    };
    assert_eq!(reshaped(13, "Reshape", &["x", "copy"], vec![]), [1, 3, 2]);
    assert_eq!(reshaped(13, "Reshape", &["x", "rest"], vec![]), [1, 3, 2]);
    assert_eq!(reshaped(13, "Flatten", &["x"], vec![]), [1, 6]);
    assert_eq!(reshaped(13, "Flatten", &["x"], vec![int("axis", -3)]), [1, 6]);
    assert_eq!(reshaped(11, "Squeeze", &["x"], vec![ints("axes", &[1])]), [1, 2, 3]);
    assert_eq!(reshaped(13, "Squeeze", &["x", "one"], vec![]), [1, 2, 3]);
    assert_eq!(reshaped(13, "Squeeze", &["x"], vec![]), [1, 2, 3]);
    assert_eq!(reshaped(11, "Unsqueeze", &["x"], vec![ints("axes", &[1, -1])]), [1, 1, 1, 2, 3, 1]);
    assert_eq!(reshaped(13, "Unsqueeze", &["x", "ends"], vec![]), [1, 1, 1, 2, 3, 1]);
    assert_eq!(reshaped(7, "Dropout", &["x"], vec![float("ratio", 0.5)]), [1, 1, 2, 3]);
    assert_eq!(reshaped(13, "Dropout", &["x"], vec![int("seed", 1)]), [1, 1, 2, 3]);
    assert_eq!(reshaped(13, "Identity", &["x"], vec![]), [1, 1, 2, 3]);
}

#[test]
fn transpose_reverses_unless_told_otherwise() {
    let x: Vec<f64> = (0..6).map(f64::from).collect();
    let transposed = |dims: &str, shape: &[usize], attributes| {
        one(Builder::new(13).input("x", FLOAT, dims).node("Transpose", &["x"], "y", attributes), shape, &x)
    };
    assert_eq!(transposed("2,3", &[2, 3], vec![]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(transposed("N,2,3", &[1, 2, 3], vec![ints("perm", &[0, 2, 1])]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
}

#[test]
fn casts_between_floats_and_integers() {
    let cast = |from, to: i32, x: &[f64]| {
        let builder =
            Builder::new(13).input("x", from, "N,2").node("Cast", &["x"], "y", vec![int("to", i64::from(to))]);
        one(builder, &[1, 2], x)
    };
    assert_eq!(cast(FLOAT, FLOAT16, &[1.0, 2049.0]), [1.0, 2048.0]);
    assert_eq!(cast(FLOAT, INT32, &[1.7, -1.7]), [1.0, -1.0]);
    assert_eq!(cast(INT64, FLOAT, &[3.0, -4.0]), [3.0, -4.0]);
    assert_eq!(cast(FLOAT, FLOAT, &[3.5, -4.0]), [3.5, -4.0]);
}

#[test]
fn constants_of_every_form() {
    let constant = |attribute| {
        let builder = Builder::new(13).input("x", FLOAT, "N,2").node("Constant", &[], "c", vec![attribute]);
        one(
            builder.node("Cast", &["c"], "f", vec![int("to", 1)]).node("Add", &["x", "f"], "y", vec![]),
            &[1, 2],
            &[1.0, 2.0],
        )
    };
    let floats = |name: &str, values: &[f32]| AttributeProto {
        floats: values.to_vec(),
        r#type: 6,
        name: name.into(),
        ..AttributeProto::default()
    };
    assert_eq!(constant(float("value_float", 0.5)), [1.5, 2.5]);
    assert_eq!(constant(floats("value_floats", &[0.5, 1.5])), [1.5, 3.5]);
    assert_eq!(constant(int("value_int", 3)), [4.0, 5.0]);
    assert_eq!(constant(ints("value_ints", &[3, 4])), [4.0, 6.0]);
    let typed = [
        TensorProto { float_data: vec![2.0], ..tensor("", FLOAT, &[], vec![]) },
        TensorProto { int64_data: vec![2], ..tensor("", INT64, &[1], vec![]) },
        TensorProto { int32_data: vec![2], ..tensor("", INT32, &[1], vec![]) },
        TensorProto { int32_data: vec![2], ..tensor("", data_type::UINT8, &[1], vec![]) },
        TensorProto { int32_data: vec![0x4000], ..tensor("", FLOAT16, &[1], vec![]) },
        tensor("", FLOAT16, &[1], vec![0x00, 0x40]),
    ];
    for tensor in typed {
        assert_eq!(constant(tensor_attribute("value", tensor)), [3.0, 4.0]);
    }
}

#[test]
fn a_reshape_computed_from_shapes_is_known_at_load() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,2,3")
        .node("Shape", &["x"], "shape", vec![])
        .ints("zero", &[], &[0])
        .ints("two", &[1], &[2])
        .ints("front", &[1], &[0])
        .ints("rest", &[1], &[-1])
        .node("Gather", &["shape", "zero"], "rows", vec![int("axis", 0)])
        .node("Unsqueeze", &["rows", "front"], "first", vec![])
        .node("Gather", &["shape", "two"], "last", vec![])
        .node("Cast", &["last"], "last64", vec![int("to", 7)])
        .node("Concat", &["first", "last64", "rest"], "target", vec![int("axis", 0)])
        .node("Reshape", &["x", "target"], "y", vec![])
        .untyped_output("y");
    let plan = load(&builder).logical_plan(5).unwrap();
    assert_eq!(plan.outputs[0].shape.dims(), [5, 3, 2]);
    assert!(plan.steps.is_empty());
}

#[test]
fn sizes_used_as_numbers_are_constants_unless_they_are_the_batch() {
    let builder = |start, end| {
        Builder::new(15)
            .input("x", FLOAT, "N,3")
            .node("Shape", &["x"], "shape", vec![int("start", start), int("end", end)])
            .node("Squeeze", &["shape"], "size", vec![])
            .node("Cast", &["size"], "f", vec![int("to", 1)])
            .node("Mul", &["x", "f"], "y", vec![])
            .untyped_output("y")
    };
    assert_eq!(infer(&builder(1, 2), 1, &[Tensor::new(&[1, 3], vec![1.0, 2.0, 3.0])])[0].data, [3.0, 6.0, 9.0]);
    let file = open(&builder(0, 1));
    assert!(!file.signature().batched);
    let inputs = [Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    assert_eq!(infer_class(&file, &inputs)[0].data, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
}
