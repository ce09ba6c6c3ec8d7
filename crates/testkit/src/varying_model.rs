//! Small ONNX files whose inputs vary in more than their rows, made in memory. Tests of runtime and server upload them.

use insula_model::onnx::{
    DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TensorTypeProto,
    TypeProto, ValueInfoProto, data_type, dimension_proto,
};
use prost::Message;

/// `y = relu(x)` of FP32 `x` with `[n, length]` elements, both of any size; rows are independent.
pub fn any_length() -> Vec<u8> {
    let value = |name: &str| described(name, data_type::FLOAT, &["n", "length"]);
    model(vec![node("Relu", &["x"])], vec![value("x")], value("y"))
}

/// `y = reshape(x, shape)` of FP32 `x` with 12 elements; the values of `shape`, two INT64, decide the shape of `y`.
pub fn shape_from_values() -> Vec<u8> {
    let inputs = vec![described("x", data_type::FLOAT, &["12"]), described("shape", data_type::INT64, &["2"])];
    model(vec![node("Reshape", &["x", "shape"])], inputs, described("y", data_type::FLOAT, &["a", "b"]))
}

fn node(operator: &str, inputs: &[&str]) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(|input| input.to_string()).collect(),
        output: vec!["y".into()],
        name: "only".into(),
        op_type: operator.into(),
        ..NodeProto::default()
    }
}

fn model(node: Vec<NodeProto>, input: Vec<ValueInfoProto>, output: ValueInfoProto) -> Vec<u8> {
    let graph = GraphProto { node, input, output: vec![output], name: "g".into(), ..GraphProto::default() };
    let opset_import = vec![OperatorSetIdProto { version: 17, ..OperatorSetIdProto::default() }];
    ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() }.encode_to_vec()
}

fn described(name: &str, elem_type: i32, dims: &[&str]) -> ValueInfoProto {
    let dim = |dim: &&str| DimensionProto {
        value: Some(match dim.parse() {
            Ok(size) => dimension_proto::Value::DimValue(size),
            Err(_) => dimension_proto::Value::DimParam(dim.to_string()),
        }),
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type, shape });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
}
