//! The parts of ONNX's protobuf messages that the reader uses, with the field numbers of `onnx.proto`. Fields not listed
//! are skipped when read. It checks nothing; the reader does. Tests and tools encode models with the same messages.

use bytes::Bytes;
use prost::Message;

/// A model: a graph and the operator sets it is written in.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The tool that wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// One version a domain.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

/// The version of one domain's operators.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// Nodes, constants, inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The graph's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs (in old files also the constants' names).
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Constants with few non-zero elements; only counted, never read.
    #[prost(bytes = "bytes", repeated, tag = "15")]
    pub sparse_initializer: Vec<Bytes>,
}

/// One operator applied to values.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the inputs; empty for one left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the outputs; empty for one not wanted.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The node's name; may be empty.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator's domain.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// A named attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A float.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// An integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// A string.
    #[prost(bytes = "bytes", tag = "4")]
    pub s: Bytes,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph: a branch of a conditional.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Floats.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// Integers.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// Strings.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Which field holds the value: see [`attribute_type`].
    #[prost(int32, tag = "20")]
    pub r#type: i32,
    /// The name of a function's attribute that this one stands for.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
}

/// Values of [`AttributeProto::type`].
pub mod attribute_type {
    /// `f`
    pub const FLOAT: i32 = 1;
    /// `i`
    pub const INT: i32 = 2;
    /// `s`
    pub const STRING: i32 = 3;
    /// `t`
    pub const TENSOR: i32 = 4;
    /// `g`
    pub const GRAPH: i32 = 5;
    /// `floats`
    pub const FLOATS: i32 = 6;
    /// `ints`
    pub const INTS: i32 = 7;
    /// `strings`
    pub const STRINGS: i32 = 8;
}

/// A constant.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// The dimensions.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// The element type: see [`data_type`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// FP32 elements.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of up to 32 bits, FP16 as its bits.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// INT64 elements.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// The name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// All elements, little-endian.
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
    /// FP64 elements.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// UINT32 and UINT64 elements.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Where the elements are, if not here: `location`, `offset`, `length`.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 0: here; 1: external.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Values of [`TensorProto::data_type`].
pub mod data_type {
    /// FP32
    pub const FLOAT: i32 = 1;
    /// Unsigned 8 bit
    pub const UINT8: i32 = 2;
    /// Signed 8 bit
    pub const INT8: i32 = 3;
    /// Unsigned 16 bit
    pub const UINT16: i32 = 4;
    /// Signed 16 bit
    pub const INT16: i32 = 5;
    /// Signed 32 bit
    pub const INT32: i32 = 6;
    /// Signed 64 bit
    pub const INT64: i32 = 7;
    /// Strings
    pub const STRING: i32 = 8;
    /// Booleans
    pub const BOOL: i32 = 9;
    /// FP16
    pub const FLOAT16: i32 = 10;
    /// FP64
    pub const DOUBLE: i32 = 11;
    /// Unsigned 32 bit
    pub const UINT32: i32 = 12;
    /// Unsigned 64 bit
    pub const UINT64: i32 = 13;
    /// bfloat16
    pub const BFLOAT16: i32 = 16;
}

/// A graph input or output: a name and a type.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type; only tensors are read, sequences and maps leave this empty.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// A dense tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// Element type and dimensions.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// The element type: see [`data_type`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The dimensions; absent when even their number is unknown.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// Dimensions.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// One entry a dimension.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// One dimension.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// A size or a symbol; neither when unknown.
    #[prost(oneof = "dimension_proto::Value", tags = "1, 2")]
    pub value: Option<dimension_proto::Value>,
}

/// The two forms of a dimension.
pub mod dimension_proto {
    /// A size or a symbol.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// A size.
        #[prost(int64, tag = "1")]
        DimValue(i64),
        /// A symbol.
        #[prost(string, tag = "2")]
        DimParam(String),
    }
}
