//! Models whose inputs vary in more than their rows: a model for each shape class, and requests alone where rows meet.

use insula_model::onnx::data_type::{BOOL, FLOAT, INT64};
use insula_model::onnx::*;
use insula_model::{LoadErrorKind, LoadOptions, ModelFile, NoExternalData};

use crate::builder::*;
use crate::interpreter::{Folder, Tensor};
use crate::loading::{infer_class, open};

fn base() -> Builder {
    Builder::new(17).input("x", FLOAT, "N,4")
}

#[test]
fn rows_that_meet_make_a_model_that_serves_each_request_alone() {
    let image =
        || Builder::new(17).input("x", FLOAT, "N,4,4").floats("w", &[4], &[0.0; 4]).ints("shape", &[2], &[-1, 4]);
    let bad = [
        image().node("Softmax", &["x"], "y", vec![int("axis", 0)]),
        image().node("ArgMax", &["x"], "y", vec![]),
        image().node("ReduceMean", &["x"], "y", vec![]),
        image().node("ReduceMean", &["x"], "y", vec![ints("axes", &[-3])]),
        image().node("Transpose", &["x"], "y", vec![]),
        image().node("Transpose", &["x"], "y", vec![ints("perm", &[1, 0, 2])]),
        image().node("Reshape", &["x", "shape"], "y", vec![]),
        image().node("Flatten", &["x"], "y", vec![int("axis", 2)]),
        image().node("Flatten", &["x"], "y", vec![int("axis", 0)]),
        image().ints("zero", &[1], &[0]).node("Unsqueeze", &["x", "zero"], "y", vec![]),
        base().node("Gemm", &["x", "x"], "y", vec![int("transA", 1)]),
        base().node("MatMul", &["x", "x"], "y", vec![]),
        base().node("Gemm", &["x", "x"], "y", vec![int("transB", 1)]),
        base().floats("w", &[3, 4], &[0.0; 12]).node("Add", &["x", "w"], "y", vec![]),
        base().floats("w", &[4], &[0.0; 4]).node("MatMul", &["w", "x"], "y", vec![]),
        base().ints("one", &[2], &[1, -1]).node("Reshape", &["x", "one"], "y", vec![]),
    ];
    for builder in bad {
        let file = open(&builder.untyped_output("y"));
        assert!(!file.signature().batched && file.fixed().is_none(), "{file:?}");
        assert_eq!(file.signature().max_batch, 1);
    }
}

#[test]
fn inputs_that_count_rows_differently_are_served_alone() {
    let with = |dims| open(&base().input("z", FLOAT, dims).node("Add", &["x", "z"], "y", vec![]).untyped_output("y"));
    assert!(!with("M,4").signature().batched);
    assert!(!with("1,4").signature().batched);
    assert!(with("N,4").signature().batched);
}

#[test]
fn outputs_without_rows_are_served_alone() {
    let constant = base().floats("w", &[4], &[0.0; 4]).node("Identity", &["w"], "y", vec![]).untyped_output("y");
    assert!(!open(&constant).signature().batched);
    let shape = open(&base().node("Shape", &["x"], "y", vec![]).untyped_output("y"));
    assert_eq!(infer_class(&shape, &[Tensor::new(&[3, 4], vec![0.0; 12])])[0].data, [3.0, 4.0]);
}

#[test]
fn a_model_for_any_size_is_planned_for_each() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "N,2,height,width")
        .random_floats("w", &[3, 2, 3, 3], 1)
        .node("Conv", &["x", "w"], "c", vec![ints("pads", &[1, 1, 1, 1])])
        .node("GlobalAveragePool", &["c"], "y", vec![])
        .untyped_output("y");
    let file = open(&builder);
    assert!(file.signature().batched && file.fixed().is_none());
    assert_eq!(file.signature().inputs[0].protocol_shape(), [-1, 2, -1, -1]);
    for [height, width] in [[4, 4], [7, 3], [1, 1]] {
        let found = infer_class(&file, &[Tensor::new(&[2, 2, height, width], vec![1.0; 4 * height * width])]);
        assert_eq!(found[0].dims, [2, 3, 1, 1]);
    }
}

#[test]
fn values_that_decide_shapes_are_part_of_the_class() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "2,3")
        .input("shape", INT64, "2")
        .node("Reshape", &["x", "shape"], "y", vec![])
        .output("y", FLOAT, "a,b");
    let file = open(&builder);
    assert!(file.is_value(1) && !file.is_value(0));
    for shape in [[3.0, 2.0], [6.0, 1.0], [1.0, -1.0]] {
        let data: Vec<f64> = (0..6).map(f64::from).collect();
        let found = infer_class(&file, &[Tensor::new(&[2, 3], data.clone()), Tensor::new(&[2], shape.to_vec())]);
        assert_eq!(found[0].data, data);
        assert_eq!(found[0].dims[0], shape[0] as usize);
    }
}

#[test]
fn a_shape_that_depends_on_data_is_refused_by_the_name_of_the_input() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "2,width")
        .node("Cast", &["x"], "shape", vec![int("to", 7)])
        .node("Reshape", &["x", "shape"], "y", vec![])
        .output("y", FLOAT, "a,b");
    let error = ModelFile::load(builder.bytes(), &NoExternalData, &LoadOptions::new(&Folder)).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::Unsupported);
    assert!(error.message().contains("`x`") && error.message().contains("`node_y`"), "{error}");
}

#[test]
fn a_condition_takes_its_branch_and_may_be_an_inputs_value() {
    let branch = |operator: &str, output: &str| GraphProto {
        node: vec![NodeProto {
            input: vec!["x".into()],
            output: vec![output.into()],
            op_type: operator.into(),
            ..NodeProto::default()
        }],
        output: vec![ValueInfoProto { name: output.into(), r#type: None }],
        ..GraphProto::default()
    };
    let graph = |name: &str, graph| AttributeProto {
        name: name.into(),
        g: Some(graph),
        r#type: attribute_type::GRAPH,
        ..AttributeProto::default()
    };
    let builder = Builder::new(17)
        .input("x", FLOAT, "2")
        .input("flag", BOOL, "1")
        .node(
            "If",
            &["flag"],
            "y",
            vec![graph("then_branch", branch("Relu", "t")), graph("else_branch", branch("Identity", "e"))],
        )
        .output("y", FLOAT, "2");
    let file = open(&builder);
    let run = |flag| infer_class(&file, &[Tensor::new(&[2], vec![-1.0, 1.0]), Tensor::new(&[1], vec![flag])]);
    assert_eq!(run(1.0)[0].data, [0.0, 1.0]);
    assert_eq!(run(0.0)[0].data, [-1.0, 1.0]);
}

#[test]
fn branches_within_branches_end_at_a_limit() {
    let mut graph = GraphProto {
        node: vec![NodeProto {
            input: vec!["x".into()],
            output: vec!["t".into()],
            op_type: "Relu".into(),
            ..NodeProto::default()
        }],
        output: vec![ValueInfoProto { name: "t".into(), r#type: None }],
        ..GraphProto::default()
    };
    for depth in 0..60 {
        let branch = |name: &str, graph: &GraphProto| AttributeProto {
            name: name.into(),
            g: Some(graph.clone()),
            r#type: attribute_type::GRAPH,
            ..AttributeProto::default()
        };
        let empty = GraphProto { output: graph.output.clone(), ..GraphProto::default() };
        let output = format!("o{depth}");
        let node = NodeProto {
            input: vec!["true".into()],
            output: vec![output.clone()],
            op_type: "If".into(),
            attribute: vec![branch("then_branch", &graph), branch("else_branch", &empty)],
            ..NodeProto::default()
        };
        let outputs = vec![ValueInfoProto { name: output, r#type: None }];
        graph = GraphProto { node: vec![node], output: outputs, ..GraphProto::default() };
    }
    let mut builder = base().constant(tensor("true", BOOL, &[], vec![1]));
    builder.graph().node = graph.node;
    builder.graph().output = graph.output;
    let error = ModelFile::load(builder.bytes(), &NoExternalData, &LoadOptions::new(&Folder)).unwrap_err();
    assert!(matches!(error.kind(), LoadErrorKind::Limit | LoadErrorKind::Malformed), "{error}");
}
