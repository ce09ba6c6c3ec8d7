//! One test a refusal: what is wrong with the file is said with the node, the input or the constant at fault.

use insula_core::{Code, Error};
use insula_model::onnx::data_type::{BOOL, FLOAT, INT64, STRING};
use insula_model::onnx::*;
use insula_model::{LoadErrorKind, LoadOptions, Model, NoExternalData, NoFolding, UploadedData};
use prost::Message;

use crate::builder::*;
use crate::loading::{load, try_load};

fn base() -> Builder {
    Builder::new(17).input("x", FLOAT, "N,4")
}

/// The model is refused with `kind`, in words that hold each of `parts`, and the same way the second time.
#[track_caller]
fn assert_refused(builder: &Builder, kind: LoadErrorKind, parts: &[&str]) {
    let error = try_load(builder.bytes()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.message().contains(part), "{part:?} is missing in {error}");
    }
    assert_eq!(Error::from(error.clone()).code(), Code::InvalidArgument);
    assert_eq!(try_load(builder.bytes()).unwrap_err(), error);
}

#[track_caller]
fn assert_malformed(builder: &Builder, parts: &[&str]) {
    assert_refused(builder, LoadErrorKind::Malformed, parts);
}

#[track_caller]
fn assert_unsupported(builder: &Builder, parts: &[&str]) {
    assert_refused(builder, LoadErrorKind::Unsupported, parts);
}

#[test]
fn an_unknown_operator_is_named_with_what_is_supported() {
    let builder = base().node("NoSuchOperator", &["x"], "y", vec![]).untyped_output("y");
    assert_unsupported(&builder, &["`node_y`", "`NoSuchOperator`", "`ai.onnx`", "opset 17", "ArgMax", "Unsqueeze"]);
}

#[test]
fn an_operator_of_another_domain_is_named_with_its_domain() {
    let mut builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y");
    builder.graph().node[0].domain = "com.example".into();
    builder.graph().node[0].name = String::new();
    assert_unsupported(&builder, &["node 0, which writes `y`", "`com.example`"]);
}

#[test]
fn an_unknown_attribute_is_named_with_the_known_ones() {
    let builder = base().node("Softmax", &["x"], "y", vec![int("axes", 1)]).untyped_output("y");
    assert_unsupported(&builder, &["`node_y`", "`axes`", "`axis`"]);
}

#[test]
fn an_attribute_of_the_wrong_type_or_given_twice_is_refused() {
    let builder = base().node("Softmax", &["x"], "y", vec![text("axis", "1")]).untyped_output("y");
    assert_malformed(&builder, &["`axis`", "an integer"]);
    let builder = base().node("Softmax", &["x"], "y", vec![int("axis", 1), int("axis", 1)]).untyped_output("y");
    assert_malformed(&builder, &["`axis` is given twice"]);
}

#[test]
fn an_attribute_from_a_later_opset_is_refused() {
    let pool = |opset| {
        let attributes = vec![ints("kernel_shape", &[2, 2]), int("ceil_mode", 1)];
        Builder::new(opset).input("x", FLOAT, "N,1,4,4").node("MaxPool", &["x"], "y", attributes).untyped_output("y")
    };
    assert_unsupported(&pool(8), &["`ceil_mode`"]);
    load(&pool(10));
}

#[test]
fn operator_sets_out_of_range_are_refused() {
    for opset in [6, 1000, -1] {
        let mut builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y");
        builder.model.opset_import[0].version = opset;
        assert_unsupported(&builder, &["7 to 28"]);
    }
    let mut builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y");
    builder.model.opset_import.clear();
    assert_malformed(&builder, &["operator set"]);
}

#[test]
fn a_file_without_a_graph_is_refused() {
    let mut builder = base();
    builder.model.graph = None;
    assert_malformed(&builder, &["no graph"]);
    assert_eq!(try_load(Vec::new().into()).unwrap_err().kind(), LoadErrorKind::Malformed);
}

#[test]
fn a_graph_without_outputs_is_refused() {
    assert_malformed(&base().node("Relu", &["x"], "y", vec![]), &["no output"]);
}

#[test]
fn a_truncated_file_is_refused_wherever_it_ends() {
    let builder = base().floats("w", &[4], &[1.0; 4]).node("Add", &["x", "w"], "y", vec![]).output("y", FLOAT, "N,4");
    let bytes = builder.bytes();
    for length in 0..bytes.len() {
        assert_eq!(try_load(bytes.slice(..length)).unwrap_err().kind(), LoadErrorKind::Malformed, "{length} bytes");
    }
    try_load(bytes).unwrap();
}

#[test]
fn a_cycle_is_refused_at_one_of_its_nodes() {
    let builder = base()
        .node("Relu", &["x"], "fine", vec![])
        .node("Add", &["fine", "c"], "a", vec![])
        .node("Relu", &["a"], "b", vec![])
        .node("Relu", &["b"], "c", vec![])
        .node("Relu", &["c"], "y", vec![])
        .untyped_output("y");
    let error = try_load(builder.bytes()).unwrap_err();
    assert!(error.message().contains("cycle"), "{error}");
    assert!(["`node_a`", "`node_b`", "`node_c`"].iter().any(|name| error.message().contains(name)), "{error}");
    assert_malformed(&base().node("Add", &["x", "y"], "y", vec![]).untyped_output("y"), &["`node_y`", "cycle"]);
}

#[test]
fn a_missing_input_is_named() {
    assert_malformed(
        &base().node("Add", &["x", "missing"], "y", vec![]).untyped_output("y"),
        &["`node_y`", "`missing`"],
    );
    assert_malformed(&base().node("Add", &["x", ""], "y", vec![]).untyped_output("y"), &["`node_y`", "input 1"]);
    assert_malformed(&base().node("Relu", &["x"], "y", vec![]).untyped_output("z"), &["`z`"]);
}

#[test]
fn an_output_written_twice_is_named() {
    let twice = base().node("Relu", &["x"], "y", vec![]).node("Tanh", &["x"], "y", vec![]).untyped_output("y");
    assert_malformed(&twice, &["`y`", "already"]);
    assert_malformed(&base().node("Relu", &["x"], "x", vec![]).untyped_output("x"), &["`x`", "an input"]);
    let constant = base().floats("w", &[], &[1.0]).node("Relu", &["x"], "w", vec![]).untyped_output("w");
    assert_malformed(&constant, &["`w`", "a constant"]);
}

#[test]
fn names_given_twice_are_refused() {
    let builder = base().input("x", FLOAT, "N,4").node("Relu", &["x"], "y", vec![]).untyped_output("y");
    assert_malformed(&builder, &["two inputs", "`x`"]);
    let builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y").untyped_output("y");
    assert_malformed(&builder, &["two outputs", "`y`"]);
    let builder = base()
        .floats("w", &[], &[1.0])
        .floats("w", &[], &[1.0])
        .node("Add", &["x", "w"], "y", vec![])
        .untyped_output("y");
    assert_malformed(&builder, &["two constants", "`w`"]);
}

#[test]
fn a_wrong_number_of_inputs_or_outputs_is_refused() {
    assert_malformed(&base().node("Add", &["x"], "y", vec![]).untyped_output("y"), &["1 inputs, expected 2"]);
    assert_malformed(
        &base().node("Conv", &["x", "x", "x", "x"], "y", vec![]).untyped_output("y"),
        &["expected 2 to 3"],
    );
    let mut builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y");
    builder.graph().node[0].output.clear();
    assert_malformed(&builder, &["no output"]);
    let attributes = vec![ints("kernel_shape", &[2, 2])];
    let mut builder =
        Builder::new(17).input("x", FLOAT, "N,1,4,4").node("AveragePool", &["x"], "y", attributes).untyped_output("y");
    builder.graph().node[0].output.push("indices".into());
    assert_unsupported(&builder, &["`indices`", "1 of this operator"]);
}

#[test]
fn declared_outputs_must_be_what_the_graph_makes() {
    assert_malformed(&base().node("Relu", &["x"], "y", vec![]).output("y", FLOAT, "N,5"), &["`y`", "[batch,4]"]);
    assert_malformed(&base().node("Relu", &["x"], "y", vec![]).output("y", FLOAT, "N,4,1"), &["`y`", "[batch,4]"]);
    assert_malformed(&base().node("Relu", &["x"], "y", vec![]).output("y", INT64, "N,4"), &["`y`", "INT64", "FP32"]);
}

#[test]
fn constants_whose_data_does_not_fit_their_shape_are_named() {
    let with = |tensor| base().constant(tensor).node("Add", &["x", "w"], "y", vec![]).untyped_output("y");
    let good = tensor("w", FLOAT, &[4], vec![0; 16]);
    load(&with(good.clone()));
    let bad = [
        (tensor("w", FLOAT, &[4], vec![0; 15]), "15 bytes"),
        (tensor("w", FLOAT, &[4], vec![0; 17]), "17 bytes"),
        (tensor("w", FLOAT, &[4], vec![]), "0 elements"),
        (tensor("w", FLOAT, &[-4], vec![0; 16]), "-4"),
        (tensor("w", FLOAT, &[1 << 40, 1 << 40], vec![0; 16]), "overflows"),
        (tensor("w", FLOAT, &[i64::MAX], vec![0; 16]), "more bytes"),
        (tensor("w", FLOAT, &[1; 9], vec![0; 4]), "9 dimensions"),
        (TensorProto { float_data: vec![0.0; 3], ..tensor("w", FLOAT, &[4], vec![]) }, "3 elements"),
        (TensorProto { data_location: 7, ..good }, "data_location"),
    ];
    for (tensor, part) in bad {
        assert_malformed(&with(tensor), &["constant `w`", part]);
    }
}

#[test]
fn constants_of_strange_types_are_refused() {
    let with = |tensor| base().constant(tensor).node("Relu", &["x"], "y", vec![]).untyped_output("y");
    assert_unsupported(&with(tensor("w", STRING, &[1], vec![0])), &["`w`", "STRING"]);
    assert_unsupported(&with(tensor("w", 17, &[1], vec![0])), &["`w`", "element type 17"]);
    assert_malformed(&with(tensor("w", BOOL, &[1], vec![2])), &["`w`", "BOOL"]);
    let mut builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y");
    builder.graph().sparse_initializer.push(vec![].into());
    assert_unsupported(&builder, &["sparse"]);
}

#[test]
fn constants_over_the_limit_are_refused_before_they_are_read() {
    let mut huge = tensor("w", FLOAT, &[1 << 34], vec![]);
    huge.data_location = 1;
    assert_refused(&base().constant(huge), LoadErrorKind::Limit, &["constant `w`", "the limit"]);
    let builder = base().floats("w", &[4], &[0.0; 4]).node("Add", &["x", "w"], "y", vec![]).untyped_output("y");
    let options = LoadOptions { constant_limit: 15, ..LoadOptions::new(&NoFolding) };
    assert_eq!(Model::load(builder.bytes(), &NoExternalData, &options).unwrap_err().kind(), LoadErrorKind::Limit);
}

fn external(entries: &[(&str, &str)]) -> Builder {
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto { key: key.to_string(), value: value.to_string() };
    let external_data = entries.iter().map(entry).collect();
    let tensor = TensorProto { external_data, data_location: 1, ..tensor("w", FLOAT, &[4], vec![]) };
    base().constant(tensor).node("Add", &["x", "w"], "y", vec![]).untyped_output("y")
}

#[test]
fn external_data_is_read_from_what_was_uploaded_and_nothing_else() {
    let data = UploadedData::new([("w.bin".to_string(), vec![0u8; 20].into())].into());
    let load = |entries: &[(&str, &str)]| Model::load(external(entries).bytes(), &data, &LoadOptions::new(&NoFolding));
    load(&[("location", "w.bin"), ("offset", "4"), ("length", "16")]).unwrap();
    load(&[("location", "w.bin")]).unwrap();
    let bad: [&[(&str, &str)]; 9] = [
        &[],
        &[("location", "")],
        &[("location", "../w.bin")],
        &[("location", "/w.bin")],
        &[("location", "other.bin")],
        &[("location", "w.bin"), ("offset", "5")],
        &[("location", "w.bin"), ("offset", "-1")],
        &[("location", "w.bin"), ("offset", "18446744073709551615")],
        &[("location", "w.bin"), ("length", "15")],
    ];
    for entries in bad {
        let error = load(entries).unwrap_err();
        assert_eq!(error.kind(), LoadErrorKind::ExternalData, "{error}");
        assert!(error.message().contains("constant `w`"), "{error}");
    }
}

#[test]
fn inputs_that_are_not_tensors_of_known_shape_are_named() {
    let with = |change: &dyn Fn(&mut ValueInfoProto)| {
        let mut builder = base().node("Relu", &["x"], "y", vec![]).untyped_output("y");
        change(&mut builder.graph().input[0]);
        builder
    };
    assert_malformed(&with(&|input| input.r#type = None), &["input `x`", "type is missing"]);
    assert_unsupported(&with(&|input| input.r#type = Some(TypeProto::default())), &["input `x`", "not a tensor"]);
    let tensor_type = TensorTypeProto { elem_type: FLOAT, shape: None };
    let shapeless = TypeProto { tensor_type: Some(tensor_type) };
    assert_unsupported(&with(&|input| input.r#type = Some(shapeless.clone())), &["input `x`", "shape"]);
    assert_unsupported(&with(&|input| *input = value_info("x", 99, "N,4")), &["input `x`", "element type 99"]);
    assert_malformed(&with(&|input| *input = value_info("x", FLOAT, "N,-2")), &["input `x`", "dimension 1 is -2"]);
    assert_malformed(&with(&|input| *input = value_info("x", FLOAT, "N,-7")), &["input `x`", "-7"]);
    assert_unsupported(
        &with(&|input| *input = value_info("x", FLOAT, "N,1,1,1,1,1,1,1,1")),
        &["input `x`", "9 dimensions"],
    );
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let w = |dims: &[i64]| base().random_floats("w", dims, 1);
    let bad = [
        w(&[3]).node("Add", &["x", "w"], "y", vec![]),
        w(&[3, 5]).node("MatMul", &["x", "w"], "y", vec![]),
        w(&[3, 5]).node("Gemm", &["x", "w"], "y", vec![]),
        w(&[4, 5]).floats("c", &[4], &[0.0; 4]).node("Gemm", &["x", "w", "c"], "y", vec![]),
        w(&[]).node("MatMul", &["x", "w"], "y", vec![]),
        base().node("Softmax", &["x"], "y", vec![int("axis", 2)]),
        base().node("Softmax", &["x"], "y", vec![int("axis", -3)]),
        base().node("Transpose", &["x"], "y", vec![ints("perm", &[0, 0])]),
        base().node("Transpose", &["x"], "y", vec![ints("perm", &[0])]),
        base().ints("shape", &[2], &[0, 5]).node("Reshape", &["x", "shape"], "y", vec![]),
        base().ints("shape", &[2], &[0, -2]).node("Reshape", &["x", "shape"], "y", vec![]),
        base().ints("shape", &[3], &[0, -1, -1]).node("Reshape", &["x", "shape"], "y", vec![]),
        base().ints("shape", &[3], &[0, 3, -1]).node("Reshape", &["x", "shape"], "y", vec![]),
        base().ints("shape", &[3], &[0, 4, 0]).node("Reshape", &["x", "shape"], "y", vec![]),
        base().ints("axes", &[1], &[1]).node("Squeeze", &["x", "axes"], "y", vec![]),
        base().ints("axes", &[2], &[1, 1]).node("Unsqueeze", &["x", "axes"], "y", vec![]),
        base().node("Unsqueeze", &["x"], "y", vec![]),
        base().node("GlobalAveragePool", &["x"], "y", vec![]),
    ];
    for builder in bad {
        assert_malformed(&builder.untyped_output("y"), &["`node_y`"]);
    }
}

#[test]
fn convolutions_that_do_not_fit_are_named() {
    let conv = |weight: &[i64], attributes| {
        let builder = Builder::new(17).input("x", FLOAT, "N,4,6,6").random_floats("w", weight, 1);
        builder.node("Conv", &["x", "w"], "y", attributes).untyped_output("y")
    };
    let fits =
        vec![ints("kernel_shape", &[3, 3]), ints("strides", &[1, 1]), ints("pads", &[1, 1, 1, 1]), int("group", 2)];
    load(&conv(&[8, 2, 3, 3], fits));
    let bad = [
        (vec![8, 3, 3, 3], vec![]),
        (vec![8, 2, 3, 3], vec![int("group", 3)]),
        (vec![9, 2, 3, 3], vec![int("group", 2)]),
        (vec![8, 4, 3, 3], vec![int("group", 0)]),
        (vec![8, 4, 3, 3], vec![int("group", -1)]),
        (vec![8, 4, 3, 3], vec![ints("kernel_shape", &[3, 2])]),
        (vec![8, 4, 7, 3], vec![]),
        (vec![8, 4, 3, 3], vec![ints("strides", &[0, 1])]),
        (vec![8, 4, 3, 3], vec![ints("dilations", &[3, 3])]),
        (vec![8, 4, 3, 3], vec![ints("pads", &[-1, 0, 0, 0])]),
        (vec![8, 4, 3, 3], vec![ints("pads", &[1, 1, 1, i64::MAX])]),
        (vec![8, 4, 3], vec![]),
        (vec![8, 4, 3, 3], vec![ints("pads", &[1, 1])]),
        (vec![8, 4, 3, 3], vec![text("auto_pad", "SAME")]),
        (vec![8, 4, 3, 3], vec![text("auto_pad", "SAME_UPPER"), ints("pads", &[1, 1, 1, 1])]),
    ];
    for (weight, attributes) in bad {
        assert_malformed(&conv(&weight, attributes), &["`node_y`"]);
    }
    assert_unsupported(
        &base().random_floats("w", &[1, 4, 1, 1], 1).node("Conv", &["x", "w"], "y", vec![]).untyped_output("y"),
        &["3 to 5 dimensions"],
    );
}

#[test]
fn poolings_with_windows_of_padding_alone_are_named() {
    let pool = |attributes| {
        Builder::new(17).input("x", FLOAT, "N,1,2,2").node("MaxPool", &["x"], "y", attributes).untyped_output("y")
    };
    load(&pool(vec![ints("kernel_shape", &[2, 2]), ints("pads", &[1, 1, 1, 1])]));
    assert_unsupported(&pool(vec![ints("kernel_shape", &[1, 1]), ints("pads", &[1, 0, 0, 0])]), &["without any pixel"]);
    assert_unsupported(&pool(vec![ints("kernel_shape", &[1, 1]), ints("pads", &[0, 0, 0, 1])]), &["without any pixel"]);
    let hollow = vec![ints("kernel_shape", &[2, 2]), ints("dilations", &[3, 3]), ints("pads", &[1, 1, 1, 1])];
    assert_unsupported(&pool(hollow), &["without any pixel"]);
    assert_malformed(&pool(vec![]), &["`kernel_shape` is missing"]);
    let huge = vec![ints("kernel_shape", &[1 << 40, 1])];
    assert_malformed(&pool(huge), &["`kernel_shape`"]);
}

#[test]
fn types_without_arithmetic_are_named() {
    let with = |elem_type| {
        Builder::new(17).input("x", elem_type, "N,4").node("Sigmoid", &["x"], "y", vec![]).untyped_output("y")
    };
    assert_unsupported(&with(INT64), &["`node_y`", "INT64", "floats"]);
    assert_unsupported(&with(STRING), &["`node_y`", "BYTES"]);
    let mixed = base()
        .constant(tensor("w", data_type::FLOAT16, &[4], vec![0; 8]))
        .node("Add", &["x", "w"], "y", vec![])
        .untyped_output("y");
    assert_malformed(&mixed, &["FP16", "FP32"]);
    let cast = base().node("Cast", &["x"], "y", vec![int("to", i64::from(STRING))]).untyped_output("y");
    assert_unsupported(&cast, &["`node_y`", "Cast", "BYTES"]);
    assert_unsupported(
        &base().node("Cast", &["x"], "y", vec![int("to", 1 << 40)]).untyped_output("y"),
        &["element type"],
    );
    assert_malformed(&base().node("Cast", &["x"], "y", vec![]).untyped_output("y"), &["`to`"]);
}

#[test]
fn training_is_refused() {
    let norm = |opset, attributes| {
        let image = Builder::new(opset).input("x", FLOAT, "N,2,1,1").floats("one", &[2], &[1.0; 2]);
        image.node("BatchNormalization", &["x", "one", "one", "one", "one"], "y", attributes).untyped_output("y")
    };
    assert_unsupported(&norm(7, vec![int("spatial", 0)]), &["spatial"]);
    let dropout = base().floats("ratio", &[], &[0.5]).constant(tensor("training", BOOL, &[], vec![1]));
    assert_unsupported(
        &dropout.node("Dropout", &["x", "ratio", "training"], "y", vec![]).untyped_output("y"),
        &["training_mode"],
    );
}

#[test]
fn subgraphs_and_functions_attributes_are_refused() {
    let mut builder = base().node("Relu", &["x"], "y", vec![int("alpha", 1)]).untyped_output("y");
    builder.graph().node[0].attribute[0].ref_attr_name = "outer".into();
    assert_unsupported(&builder, &["function"]);
}

#[test]
fn intermediates_over_the_limit_are_refused() {
    let builder = base().random_floats("w", &[4, 1000], 1).node("MatMul", &["x", "w"], "y", vec![]).untyped_output("y");
    let options = LoadOptions { arena_limit: 100_000, ..LoadOptions::new(&NoFolding) };
    let error = Model::load(builder.bytes(), &NoExternalData, &options).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::Limit);
    assert!(error.message().contains("lower max_batch"), "{error}");
}

#[test]
fn dimensions_too_large_to_count_are_refused() {
    let huge = format!("N,{},4", i64::MAX / 8);
    let builder = Builder::new(17).input("x", FLOAT, &huge).node("Relu", &["x"], "y", vec![]).untyped_output("y");
    assert!(try_load(builder.bytes()).is_err());
    let huge = format!("N,{}", i64::MAX / 64);
    let builder = Builder::new(17).input("x", FLOAT, &huge).node("Relu", &["x"], "y", vec![]).untyped_output("y");
    assert_refused(&builder, LoadErrorKind::Limit, &["32 rows"]);
}

#[test]
fn too_many_nodes_are_refused() {
    let mut builder = base();
    builder.graph().node = vec![NodeProto::default(); 100_001];
    assert_refused(&builder, LoadErrorKind::Limit, &["100001 nodes"]);
    assert_eq!(builder.model.encode_to_vec().len() as u64 / 100_001, 2);
}
