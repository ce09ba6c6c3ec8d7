//! A look over an ONNX file's protobuf structure before it is decoded: is it whole, and how much memory would its messages
//! take? An empty node is two bytes in a file and hundreds in memory, so a small hostile file could take a lot. It allocates
//! a short stack and nothing else. The reader calls it first.

use std::mem::size_of;

use crate::error::{LoadError, LoadResult};
use crate::onnx::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

/// The most memory that the decoded messages may take, without what is in tensors and names.
pub const MAX_STRUCTURE_BYTES: usize = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    OperatorSet,
    Node,
    Attribute,
    Tensor,
    Entry,
    ValueInfo,
    Type,
    TensorType,
    TensorShape,
    Dimension,
    Text,
}

impl Kind {
    /// What the length-delimited field `tag` of this message is, if the reader decodes it into something of its own.
    fn field(self, tag: u64) -> Option<Kind> {
        Some(match (self, tag) {
            (Kind::Model, 7) => Kind::Graph,
            (Kind::Model, 8) => Kind::OperatorSet,
            (Kind::Graph, 1) => Kind::Node,
            (Kind::Graph, 5) => Kind::Tensor,
            (Kind::Graph, 11 | 12) => Kind::ValueInfo,
            (Kind::Graph, 15) => Kind::Text,
            (Kind::Node, 1 | 2) => Kind::Text,
            (Kind::Node, 5) => Kind::Attribute,
            (Kind::Attribute, 5) => Kind::Tensor,
            (Kind::Attribute, 6) => Kind::Graph,
            (Kind::Attribute, 9) => Kind::Text,
            (Kind::Tensor, 13) => Kind::Entry,
            (Kind::ValueInfo, 2) => Kind::Type,
            (Kind::Type, 1) => Kind::TensorType,
            (Kind::TensorType, 2) => Kind::TensorShape,
            (Kind::TensorShape, 1) => Kind::Dimension,
            _ => return None,
        })
    }

    fn memory(self) -> usize {
        match self {
            Kind::Model => size_of::<ModelProto>(),
            Kind::Graph => size_of::<GraphProto>(),
            Kind::OperatorSet => size_of::<OperatorSetIdProto>(),
            Kind::Node => size_of::<NodeProto>(),
            Kind::Attribute => size_of::<AttributeProto>(),
            Kind::Tensor => size_of::<TensorProto>(),
            Kind::Entry => size_of::<StringStringEntryProto>(),
            Kind::ValueInfo => size_of::<ValueInfoProto>(),
            Kind::Type => size_of::<TypeProto>(),
            Kind::TensorType => size_of::<TensorTypeProto>(),
            Kind::TensorShape => size_of::<TensorShapeProto>(),
            Kind::Dimension => size_of::<DimensionProto>(),
            Kind::Text => size_of::<bytes::Bytes>(),
        }
    }
}

/// Refuses bytes that are not whole protobuf messages along the fields that the reader decodes, and those whose messages
/// would take more than `limit` bytes of memory.
pub fn check(bytes: &[u8], limit: usize) -> LoadResult<()> {
    let mut memory = 0usize;
    let mut open = vec![(Kind::Model, bytes)];
    while let Some((kind, mut rest)) = open.pop() {
        while !rest.is_empty() {
            let Some((tag, content)) = next_field(&mut rest) else {
                return Err(LoadError::malformed(
                    "the file is not a whole ONNX model: it is truncated or not protobuf",
                ));
            };
            let (Some(content), Some(field)) = (content, kind.field(tag)) else { continue };
            memory = memory.saturating_add(field.memory());
            if memory > limit {
                return Err(LoadError::limit(format!(
                    "the file has so many nodes, names and tensors that they alone would take more than {} MiB, the limit",
                    limit >> 20
                )));
            }
            if field != Kind::Text {
                open.push((field, content));
            }
        }
    }
    Ok(())
}

/// The next field's tag, and its content if it is length-delimited. `None`: not a whole field.
fn next_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let key = varint(rest)?;
    let content = match key & 7 {
        0 => {
            varint(rest)?;
            None
        }
        1 => {
            take(rest, 8)?;
            None
        }
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Some(take(rest, length)?)
        }
        5 => {
            take(rest, 4)?;
            None
        }
        _ => return None,
    };
    Some((key >> 3, content))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LoadErrorKind;
    use prost::Message;

    fn model_of_empty_nodes(nodes: usize) -> Vec<u8> {
        let graph = GraphProto { node: vec![NodeProto::default(); nodes], ..GraphProto::default() };
        ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
    }

    #[test]
    fn empty_nodes_are_counted_by_the_memory_they_would_take() {
        let bytes = model_of_empty_nodes(1000);
        assert!(bytes.len() < 2100);
        assert!(check(&bytes, 1 << 20).is_ok());
        assert_eq!(check(&bytes, 100_000).unwrap_err().kind(), LoadErrorKind::Limit);
    }

    #[test]
    fn every_proper_prefix_of_a_model_with_a_graph_is_refused() {
        let bytes = model_of_empty_nodes(5);
        for length in 1..bytes.len() {
            assert_eq!(
                check(&bytes[..length], 1 << 20).unwrap_err().kind(),
                LoadErrorKind::Malformed,
                "{length} bytes"
            );
        }
    }

    #[test]
    fn a_varint_without_end_is_refused() {
        assert!(check(&[0xff; 32], 1 << 20).is_err());
    }
}
