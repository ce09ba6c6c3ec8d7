//! Small ONNX files, good and bad, written field by field as the format has it.

/// One field of a protobuf message.
pub enum Field {
    Number(u64, u64),
    Bytes(u64, Vec<u8>),
}

use Field::{Bytes, Number};

/// The fields of a message, written.
fn message(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        match field {
            Number(tag, value) => {
                varint(tag << 3, &mut bytes);
                varint(*value, &mut bytes);
            }
            Bytes(tag, value) => {
                varint(tag << 3 | 2, &mut bytes);
                varint(value.len() as u64, &mut bytes);
                bytes.extend_from_slice(value);
            }
        }
    }
    bytes
}

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn text(tag: u64, value: &str) -> Field {
    Bytes(tag, value.as_bytes().to_vec())
}

/// A float tensor `[N, 4]` called `name`, as an input or output.
fn value_info(name: &str) -> Vec<u8> {
    let rows = message(&[text(2, "N")]);
    let columns = message(&[Number(1, 4)]);
    let shape = message(&[Bytes(1, rows), Bytes(1, columns)]);
    let tensor = message(&[Number(1, 1), Bytes(2, shape)]);
    message(&[text(1, name), Bytes(2, message(&[Bytes(1, tensor)]))])
}

fn node(operator: &str, inputs: &[&str]) -> Vec<u8> {
    let mut fields: Vec<Field> = inputs.iter().map(|input| text(1, input)).collect();
    fields.extend([text(2, "y"), text(4, operator)]);
    message(&fields)
}

fn model(node: Vec<u8>, initializer: Option<Vec<u8>>) -> Vec<u8> {
    let mut graph = vec![Bytes(1, node), text(2, "g")];
    graph.extend(initializer.map(|tensor| Bytes(5, tensor)));
    graph.extend([Bytes(11, value_info("x")), Bytes(12, value_info("y"))]);
    with_graph(Some(message(&graph)))
}

fn with_graph(graph: Option<Vec<u8>>) -> Vec<u8> {
    let mut fields = vec![Number(1, 8)];
    fields.extend(graph.map(|graph| Bytes(7, graph)));
    fields.push(Bytes(8, message(&[Number(2, 13)])));
    message(&fields)
}

/// Returns its input.
pub fn identity() -> Vec<u8> {
    model(node("Identity", &["x"]), None)
}

/// Uses an operator that nobody has.
pub fn unknown_operator() -> Vec<u8> {
    model(node("NoSuchOperator", &["x"]), None)
}

/// Has everything but a graph.
pub fn no_graph() -> Vec<u8> {
    with_graph(None)
}

/// Adds a constant whose data lie in the file `location`.
pub fn external(location: &str) -> Vec<u8> {
    let entry = |key: &str, value: &str| Bytes(13, message(&[text(1, key), text(2, value)]));
    let tensor = message(&[
        Number(1, 4),
        Number(2, 1),
        text(8, "w"),
        entry("location", location),
        entry("offset", "0"),
        entry("length", "16"),
        Number(14, 1),
    ]);
    model(node("Add", &["x", "w"]), Some(tensor))
}

/// Adds a constant; cut off after `part` of its bytes in 100.
pub fn truncated(part: usize) -> Vec<u8> {
    let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = message(&[Number(1, 4), Number(2, 1), text(8, "w"), Bytes(9, data)]);
    let mut whole = model(node("Add", &["x", "w"]), Some(tensor));
    whole.truncate(whole.len() * part / 100);
    whole
}
