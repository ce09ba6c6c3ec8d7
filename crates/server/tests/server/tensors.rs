//! Bodies of inferences: JSON, and JSON with binary tensors behind it.

use serde_json::{Value, json};

/// FP32 values 0, 1, 2, ... for `rows` rows of `columns`, moved by `seed`.
pub fn values(rows: usize, columns: usize, seed: usize) -> Vec<f32> {
    (0..rows * columns).map(|index| (index % 97 + seed) as f32).collect()
}

/// A JSON request with one FP32 input `INPUT0` of `rows` rows.
pub fn request(rows: usize, columns: usize, data: &[f32]) -> Value {
    json!({"inputs": [{"name": "INPUT0", "shape": [rows, columns], "datatype": "FP32", "data": data}]})
}

/// The body and its header for `description` with `tail` behind it.
pub fn binary(description: &Value, tail: &[u8]) -> (Vec<u8>, String) {
    let mut body = description.to_string().into_bytes();
    let length = body.len().to_string();
    body.extend_from_slice(tail);
    (body, length)
}

/// The description of one binary input `INPUT0`.
pub fn binary_input(datatype: &str, shape: &[i64], bytes: usize) -> Value {
    json!({"name": "INPUT0", "shape": shape, "datatype": datatype, "parameters": {"binary_data_size": bytes}})
}

/// `values` in little-endian bytes.
pub fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The FP32 values of output 0 of a JSON answer.
pub fn output(answer: &Value) -> Vec<f32> {
    answer["outputs"][0]["data"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect()
}
