//! What is asked of the outputs, and what an answer may not say.

use serde_json::json;

use crate::running_server::{JSON, SHARED};
use crate::tensors::{binary, binary_input, bytes_of, output, request, values};

fn asking_for(outputs: serde_json::Value) -> serde_json::Value {
    let mut body = request(1, 16, &values(1, 16, 0));
    body["outputs"] = outputs;
    body
}

#[test]
fn an_output_that_does_not_exist_is_refused_by_name() {
    let message = SHARED.infer("identity_fp32", &asking_for(json!([{"name": "no_such_output"}]))).error(400);
    assert!(message.contains("no_such_output"), "{message}");
}

#[test]
fn an_output_asked_for_twice_is_refused_by_name() {
    let message =
        SHARED.infer("identity_fp32", &asking_for(json!([{"name": "OUTPUT0"}, {"name": "OUTPUT0"}]))).error(400);
    assert!(message.contains("OUTPUT0"), "{message}");
}

#[test]
fn values_that_json_cannot_hold_never_stand_bare_in_an_answer() {
    let mut special = values(1, 16, 0);
    special[..3].copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
    let tail = bytes_of(&special);
    let mut description = json!({"inputs": [binary_input("FP32", &[1, 16], tail.len())]});
    let (body, length) = binary(&description, &tail);
    let headers = [("inference-header-content-length", length.as_str())];
    let message = SHARED.ask("POST", "/v2/models/identity_fp32/infer", &headers, &body).error(400);
    assert!(message.contains("OUTPUT0") && message.contains("binary_data"), "{message}");
    description["outputs"] = json!([{"name": "OUTPUT0", "parameters": {"binary_data": true}}]);
    let (body, length) = binary(&description, &tail);
    let headers = [("inference-header-content-length", length.as_str())];
    let answer = SHARED.ask("POST", "/v2/models/identity_fp32/infer", &headers, &body);
    assert!(answer.status == 200 && answer.body.ends_with(&tail));
}

#[test]
fn bare_nan_in_a_request_is_not_json() {
    let body = request(1, 16, &values(1, 16, 0)).to_string().replacen("[0.0,", "[NaN,", 1);
    assert!(body.contains("NaN"));
    SHARED.ask("POST", "/v2/models/identity_fp32/infer", &[JSON], body.as_bytes()).error(400);
}

#[test]
fn the_request_s_id_and_its_times_come_back() {
    let mut body = request(1, 16, &values(1, 16, 0));
    body["id"] = json!("mine");
    let headers = [JSON, ("x-request-id", "caller-17")];
    let answer = SHARED.ask("POST", "/v2/models/identity_fp32/infer", &headers, body.to_string().as_bytes());
    assert_eq!(answer.json()["id"], "mine");
    assert_eq!(answer.header("x-request-id"), Some("caller-17"));
    let timing = answer.header("server-timing").unwrap();
    for part in ["queue;dur=", "device;dur=", "total;dur="] {
        assert!(timing.contains(part), "{timing}");
    }
}

#[test]
fn a_large_json_answer_comes_in_chunks_and_whole() {
    let texts = ["a\"b\\c\u{e4} ".repeat(30_000), "z".repeat(100_000)];
    let body = json!({"inputs": [{"name": "INPUT0", "shape": [1, 2], "datatype": "BYTES", "data": texts}]});
    let mut connection = SHARED.connect();
    for _ in 0..3 {
        let answer = connection.ask("POST", "/v2/models/identity_bytes/infer", &[JSON], body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        assert_eq!(answer.json()["outputs"][0]["data"], json!(texts));
    }
}

#[test]
fn a_small_json_answer_has_a_length() {
    let data = values(1, 16, 0);
    let answer = SHARED.infer("identity_fp32", &request(1, 16, &data));
    assert_eq!(answer.header("content-length").unwrap().parse::<usize>().unwrap(), answer.body.len());
    assert_eq!(output(&answer.json()), data);
}
