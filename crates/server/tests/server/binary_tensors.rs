//! The binary tensor extension: what stock clients use by default, and how it can be torn.

use serde_json::json;

use crate::running_server::SHARED;
use crate::tensors::{binary, binary_input, bytes_of, values};
use crate::wire::Answer;

fn ask(model: &str, body: &[u8], length: &str) -> Answer {
    let headers = [("content-type", "application/octet-stream"), ("inference-header-content-length", length)];
    SHARED.ask("POST", &format!("/v2/models/{model}/infer"), &headers, body)
}

#[test]
fn a_binary_request_is_answered_with_the_same_bytes() {
    let tail = bytes_of(&values(3, 16, 0));
    let description = json!({
        "inputs": [binary_input("FP32", &[3, 16], tail.len())],
        "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": true}}],
    });
    let (body, length) = binary(&description, &tail);
    let answer = ask("identity_fp32", &body, &length);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let described: usize = answer.header("inference-header-content-length").unwrap().parse().unwrap();
    assert_eq!(&answer.body[described..], tail);
    assert_eq!(answer.header("content-length").unwrap().parse::<usize>().unwrap(), answer.body.len());
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
}

#[test]
fn a_binary_tail_without_its_header_is_refused_by_that_header_s_name() {
    let tail = bytes_of(&values(1, 16, 0));
    let (body, _) = binary(&json!({"inputs": [binary_input("FP32", &[1, 16], tail.len())]}), &tail);
    for content_type in ["application/octet-stream", "application/x-www-form-urlencoded"] {
        let answer = SHARED.ask("POST", "/v2/models/identity_fp32/infer", &[("content-type", content_type)], &body);
        let message = answer.error(400).to_lowercase();
        assert!(message.contains("inference-header-content-length"), "{message}");
    }
}

#[test]
fn torn_byte_strings_are_refused() {
    let element = |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text].concat();
    let good = [element(b"ab"), element(b"ab")].concat();
    let torn = [
        good[..good.len() - 1].to_vec(),
        good[..good.len() - 6].to_vec(),
        [good.clone(), element(b"x")].concat(),
        [&50_529_027u32.to_le_bytes()[..], b"abc"].concat(),
        [&[0xff; 4][..], b"aaaaaaaa"].concat(),
        b"\x01\x00".to_vec(),
        Vec::new(),
    ];
    let send = |tail: &[u8]| {
        let (body, length) = binary(&json!({"inputs": [binary_input("BYTES", &[1, 2], tail.len())]}), tail);
        ask("identity_bytes", &body, &length)
    };
    assert_eq!(send(&good).status, 200);
    for tail in torn {
        let message = send(&tail).error(400);
        assert!(message.contains("INPUT0"), "{message}");
    }
}

#[test]
fn half_precision_goes_through_bit_for_bit() {
    let tail: Vec<u8> = [0x3800u16, 0xc000, 0x7bff, 0x0001].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let description = json!({
        "inputs": [binary_input("FP16", &[1, 4], tail.len())],
        "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": true}}],
    });
    let (body, length) = binary(&description, &tail);
    let answer = ask("identity_fp16", &body, &length);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body.ends_with(&tail));
}

#[test]
fn half_precision_in_json_is_exact_or_refused_by_name() {
    let body = |first: f64| json!({"inputs": [{"name": "INPUT0", "shape": [1, 4], "datatype": "FP16", "data": [first, -2.0, 65504.0, 0.25]}]});
    let answer = SHARED.infer("identity_fp16", &body(0.5));
    if answer.status == 200 {
        assert_eq!(answer.json()["outputs"][0]["data"], json!([0.5, -2.0, 65504.0, 0.25]));
        SHARED.infer("identity_fp16", &body(70000.0)).error(400);
    } else {
        assert!(answer.error(400).contains("FP16"));
    }
}

#[test]
fn a_body_may_be_the_single_input_s_bytes_alone() {
    let tail = bytes_of(&values(1, 16, 5));
    let answer = ask("identity_fp32", &tail, "0");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body.ends_with(&tail));
}

#[test]
fn lengths_that_are_none_or_too_long_are_refused() {
    for length in ["-1", "x", "1.0", "99999999999999999999", "100000"] {
        let message = ask("identity_fp32", b"{}", length).error(400);
        assert!(message.contains("Inference-Header-Content-Length"), "{message}");
    }
}
