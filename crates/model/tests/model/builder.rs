//! Makes ONNX files in memory.

use bytes::Bytes;
use insula_model::onnx::*;
use prost::Message;

/// A model under construction.
#[derive(Debug, Clone)]
pub struct Builder {
    /// The model so far, for what the short ways below do not cover.
    pub model: ModelProto,
}

impl Builder {
    /// An empty graph in version `opset` of ONNX's operators.
    pub fn new(opset: i64) -> Builder {
        let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: opset }];
        let graph = Some(GraphProto { name: "g".into(), ..GraphProto::default() });
        Builder { model: ModelProto { ir_version: 8, graph, opset_import, ..ModelProto::default() } }
    }

    /// The graph.
    pub fn graph(&mut self) -> &mut GraphProto {
        self.model.graph.as_mut().unwrap()
    }

    /// An input of element type `elem_type`; `dims` like `N,3,8,8`, where words are symbols.
    pub fn input(mut self, name: &str, elem_type: i32, dims: &str) -> Builder {
        self.graph().input.push(value_info(name, elem_type, dims));
        self
    }

    /// An output, declared in the same way.
    pub fn output(mut self, name: &str, elem_type: i32, dims: &str) -> Builder {
        self.graph().output.push(value_info(name, elem_type, dims));
        self
    }

    /// An output without a declared type.
    pub fn untyped_output(mut self, name: &str) -> Builder {
        self.graph().output.push(ValueInfoProto { name: name.into(), r#type: None });
        self
    }

    /// A node with one output, named after it.
    pub fn node(mut self, op_type: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> Builder {
        self.graph().node.push(NodeProto {
            input: inputs.iter().map(|name| name.to_string()).collect(),
            output: vec![output.into()],
            name: format!("node_{output}"),
            op_type: op_type.into(),
            attribute,
            domain: String::new(),
        });
        self
    }

    /// A constant of floats.
    pub fn floats(self, name: &str, dims: &[i64], values: &[f32]) -> Builder {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(tensor(name, data_type::FLOAT, dims, raw))
    }

    /// A constant of `count` floats in -1..1 that look random.
    pub fn random_floats(self, name: &str, dims: &[i64], seed: u64) -> Builder {
        let count = dims.iter().product::<i64>() as usize;
        let values: Vec<f32> = random(count, seed).into_iter().map(|value| value as f32).collect();
        self.floats(name, dims, &values)
    }

    /// A constant of INT64.
    pub fn ints(self, name: &str, dims: &[i64], values: &[i64]) -> Builder {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(tensor(name, data_type::INT64, dims, raw))
    }

    /// Any constant.
    pub fn constant(mut self, tensor: TensorProto) -> Builder {
        self.graph().initializer.push(tensor);
        self
    }

    /// The file.
    pub fn bytes(&self) -> Bytes {
        self.model.encode_to_vec().into()
    }
}

/// Values in -1..1 that look random and are the same everywhere (an xorshift generator).
pub fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from((state >> 40) as u32) / f64::from(1u32 << 23) - 1.0
    };
    (0..count).map(|_| next()).collect()
}

pub fn tensor(name: &str, data_type: i32, dims: &[i64], raw: Vec<u8>) -> TensorProto {
    TensorProto { name: name.into(), data_type, dims: dims.to_vec(), raw_data: raw.into(), ..TensorProto::default() }
}

pub fn value_info(name: &str, elem_type: i32, dims: &str) -> ValueInfoProto {
    let dimension = |text: &str| {
        let value = match text.parse() {
            Ok(size) => dimension_proto::Value::DimValue(size),
            Err(_) => dimension_proto::Value::DimParam(text.to_string()),
        };
        DimensionProto { value: (text != "?").then_some(value) }
    };
    let dim = dims.split(',').filter(|text| !text.is_empty()).map(dimension).collect();
    let tensor_type = TensorTypeProto { elem_type, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type: Some(tensor_type) }) }
}

fn attribute(name: &str, r#type: i32) -> AttributeProto {
    AttributeProto { name: name.into(), r#type, ..AttributeProto::default() }
}

pub fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i, ..attribute(name, attribute_type::INT) }
}

pub fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { ints: ints.to_vec(), ..attribute(name, attribute_type::INTS) }
}

pub fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { f, ..attribute(name, attribute_type::FLOAT) }
}

pub fn text(name: &str, text: &str) -> AttributeProto {
    AttributeProto { s: text.as_bytes().to_vec().into(), ..attribute(name, attribute_type::STRING) }
}

pub fn tensor_attribute(name: &str, tensor: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(tensor), ..attribute(name, attribute_type::TENSOR) }
}
