//! Writes ONNX files in memory: a chain of nodes over one batched input, weights made on the way.

use insula_model::onnx::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto, attribute_type, data_type, dimension_proto,
};
use prost::Message;

use crate::operations::tensor;

/// A network under construction. Nodes are named after their outputs.
pub struct Network {
    graph: GraphProto,
}

impl Network {
    /// A network with the input `x`, `[batch, dims..]`, FP32.
    pub fn new(dims: &[usize]) -> Network {
        let graph = GraphProto { name: "network".into(), input: vec![value("x", dims)], ..GraphProto::default() };
        Network { graph }
    }

    /// Adds a node.
    pub fn node(mut self, op: &str, inputs: &[&str], output: &str, attributes: &[(&str, &[i64])]) -> Network {
        let attribute = attributes.iter().map(|(name, values)| attribute(name, values)).collect();
        let inputs = inputs.iter().map(|input| (*input).to_string()).collect();
        self.graph.node.push(NodeProto {
            input: inputs,
            output: vec![output.to_string()],
            name: output.to_string(),
            op_type: op.to_string(),
            attribute,
            domain: String::new(),
        });
        self
    }

    /// Adds a constant of values in -scale..=scale around `center`.
    pub fn weight(mut self, name: &str, dims: &[usize], center: f32, scale: f32) -> Network {
        let values = tensor(dims, name.bytes().map(u64::from).sum()).values;
        self.graph.initializer.push(TensorProto {
            dims: dims.iter().map(|size| *size as i64).collect(),
            data_type: data_type::FLOAT,
            float_data: values.iter().map(|x| center + scale * *x as f32 / 2.0).collect(),
            name: name.to_string(),
            ..TensorProto::default()
        });
        self
    }

    /// The file, with the output `name`, `[batch, dims..]`, FP32.
    pub fn finish(mut self, name: &str, dims: &[usize]) -> Vec<u8> {
        self.graph.output.push(value(name, dims));
        let opset = OperatorSetIdProto { domain: String::new(), version: 17 };
        let model = ModelProto {
            ir_version: 8,
            producer_name: "test".into(),
            graph: Some(self.graph),
            opset_import: vec![opset],
        };
        model.encode_to_vec()
    }
}

fn attribute(name: &str, values: &[i64]) -> AttributeProto {
    let mut attribute = AttributeProto { name: name.to_string(), ..AttributeProto::default() };
    match values {
        [single] if !["axes", "perm", "pads", "strides", "kernel_shape"].contains(&name) => {
            (attribute.i, attribute.r#type) = (*single, attribute_type::INT);
        }
        _ => (attribute.ints, attribute.r#type) = (values.to_vec(), attribute_type::INTS),
    }
    attribute
}

fn value(name: &str, dims: &[usize]) -> ValueInfoProto {
    let batch = dimension_proto::Value::DimParam("batch".into());
    let fixed = dims.iter().map(|size| dimension_proto::Value::DimValue(*size as i64));
    let dim = std::iter::once(batch).chain(fixed).map(|value| DimensionProto { value: Some(value) }).collect();
    let tensor = TensorTypeProto { elem_type: data_type::FLOAT, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
}
