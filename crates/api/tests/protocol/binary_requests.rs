//! Requests with a binary tail, and raw ones without a description: where each tensor lies, and that every byte is accounted
//! for.

use std::sync::Arc;

use insula_api::{ContentEncoding, RequestFormat};
use insula_core::{Code, DType, Dimension, Error, ModelSignature, TensorSpec};

use crate::json_requests::signature;
use crate::memory::{Decoded, decode_binary, decode_packed};

fn input(name: &str, dtype: &str, columns: usize, size: &str) -> String {
    format!(
        "{{\"name\":\"{name}\",\"shape\":[1,{columns}],\"datatype\":\"{dtype}\",\"parameters\":{{\"binary_data_size\":{size}}}}}"
    )
}

fn description(x_size: &str, s_size: &str) -> String {
    format!("{{\"inputs\":[{},{}]}}", input("s", "BYTES", 1, s_size), input("x", "FP32", 4, x_size))
}

const STRING: &[u8] = b"\x02\0\0\0hi";

fn tail() -> Vec<u8> {
    [STRING, &[7; 16]].concat()
}

#[track_caller]
fn refused(result: Result<Decoded, Error>, named: &[&str]) {
    let Err(error) = result else { panic!("accepted; it should have named {named:?}") };
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    for name in named {
        assert!(error.message().contains(name), "{error} does not name {name:?}");
    }
}

#[test]
fn tensors_lie_in_the_tail_in_the_order_of_the_text_and_are_used_in_place() {
    let decoded = decode_binary(&signature(), &description("16", "6"), &tail()).unwrap();
    assert_eq!(decoded.bytes(0), [7; 16]);
    assert_eq!(decoded.bytes(1), STRING);
    assert_eq!(decoded.sink.peak, 0);
}

#[test]
fn an_input_may_come_as_json_beside_a_binary_one() {
    let text = format!(
        "{{\"inputs\":[{{\"name\":\"s\",\"shape\":[1,1],\"datatype\":\"BYTES\",\"data\":[\"hi\"]}},{}]}}",
        input("x", "FP32", 4, "16")
    );
    let decoded = decode_binary(&signature(), &text, &[9; 16]).unwrap();
    assert_eq!((decoded.bytes(0), decoded.bytes(1)), (&[9; 16][..], STRING));
}

#[test]
fn every_byte_of_the_tail_belongs_to_an_input() {
    let bytes = tail();
    refused(
        decode_binary(&signature(), &description("16", "6"), &[&bytes[..], b"xyz"].concat()),
        &["3 bytes are left over"],
    );
    refused(decode_binary(&signature(), &description("16", "6"), &bytes[..21]), &["input `x`", "16", "15"]);
    refused(
        decode_binary(&signature(), &description("28", "6"), &[&bytes[..], &[7; 12]].concat()),
        &["input `x`", "28", "16"],
    );
    refused(decode_binary(&signature(), &description("15", "6"), &bytes), &["1 bytes are left over"]);
    refused(decode_binary(&signature(), &description("15", "6"), &bytes[..21]), &["input `x`", "15", "16"]);
    refused(decode_binary(&signature(), &description("0", "6"), &bytes[..6]), &["input `x`", "16"]);
}

#[test]
fn sizes_must_be_whole_numbers_that_are_not_negative() {
    for size in ["-1", "16.0", "\"16\"", "null", "18446744073709551615", "18446744073709551616", "1e1"] {
        refused(decode_binary(&signature(), &description(size, "6"), &tail()), &["binary_data_size", "input `x`"]);
    }
}

#[test]
fn data_and_a_binary_size_together_are_refused_in_either_order() {
    for entry in [
        r#"{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2,3,4],"parameters":{"binary_data_size":16}}"#,
        r#"{"name":"x","shape":[1,4],"datatype":"FP32","parameters":{"binary_data_size":16},"data":[1,2,3,4]}"#,
    ] {
        let text = format!("{{\"inputs\":[{entry}]}}");
        refused(decode_binary(&signature(), &text, &[0; 16]), &["input `x`", "both"]);
    }
}

#[test]
fn byte_strings_are_checked_to_the_last_byte() {
    for (blob, named) in [
        (&b"\x02\0\0\0h"[..], "element 0"),
        (b"\x02\0\0\0hi\x01\0\0\0x", "after its last element"),
        (b"\xff\xff\xff\xffaaaaaaaa", "4294967295"),
        (b"\x01\0", "element 0"),
        (b"", "element 0"),
    ] {
        let text = description("16", &blob.len().to_string());
        refused(decode_binary(&signature(), &text, &[blob, &[7; 16]].concat()), &["input `s`", named]);
    }
}

#[test]
fn the_length_header_must_be_that_of_the_text() {
    let text = description("16", "6");
    let body = [text.as_bytes(), &tail()].concat();
    let decode = |length: usize| {
        let format = RequestFormat::Binary { description_length: length };
        decode_packed(format, ContentEncoding::Identity, &signature(), 0, &body, 1 << 20)
    };
    decode(text.len()).unwrap();
    refused(decode(text.len() - 1), &["ends"]);
    refused(decode(text.len() + 1), &["Inference-Header-Content-Length"]);
    refused(decode(body.len() + 1), &["Inference-Header-Content-Length", &body.len().to_string()]);
}

fn model(dtype: DType, dims: &[i64], batched: bool) -> Arc<ModelSignature> {
    let dims = dims.iter().map(|&size| usize::try_from(size).map_or(Dimension::Symbolic("d".into()), Dimension::Fixed));
    let inputs = vec![TensorSpec { name: "x".into(), dtype, dims: dims.collect() }];
    Arc::new(ModelSignature { outputs: inputs.clone(), inputs, batched, max_batch: 8 })
}

fn decode_raw(signature: &Arc<ModelSignature>, body: &[u8]) -> Result<Decoded, Error> {
    let format = RequestFormat::Binary { description_length: 0 };
    let whole = decode_packed(format, ContentEncoding::Identity, signature, 0, body, 1 << 20);
    if let Ok(whole) = &whole {
        let small = decode_packed(format, ContentEncoding::Identity, signature, 0, body, 1).unwrap();
        assert_eq!(small.bytes(0), whole.bytes(0));
    }
    whole
}

#[test]
fn a_raw_requests_shape_follows_from_its_bytes() {
    for (dims, batched, length, shape) in [
        (&[-1i64, 4][..], true, 48, &[3usize, 4][..]),
        (&[-1, -1], true, 48, &[1, 12]),
        (&[-1, 4], false, 16, &[1, 4]),
        (&[2, -1, 2], false, 32, &[2, 2, 2]),
        (&[3], false, 12, &[3]),
    ] {
        let decoded = decode_raw(&model(DType::Fp32, dims, batched), &vec![1; length]).unwrap();
        assert_eq!(decoded.request.inputs()[0].shape().dims(), shape);
        assert_eq!(decoded.bytes(0), vec![1; length]);
    }
}

#[test]
fn a_raw_request_of_bytes_is_one_element() {
    let decoded = decode_raw(&model(DType::Bytes, &[-1, 1], true), b"hello").unwrap();
    assert_eq!(decoded.request.inputs()[0].shape().dims(), [1, 1]);
    assert_eq!(decoded.bytes(0), b"\x05\0\0\0hello");
    assert_eq!(decode_raw(&model(DType::Bytes, &[1], false), b"").unwrap().bytes(0), [0; 4]);
}

#[test]
fn a_raw_request_that_fits_no_shape_is_refused() {
    for (dims, batched, length) in
        [(&[-1i64, 4][..], true, 15), (&[-1, 4], true, 0), (&[3], false, 16), (&[-1, 4], true, 16 * 9)]
    {
        refused(decode_raw(&model(DType::Fp32, dims, batched), &vec![0; length]), &[]);
    }
    refused(decode_raw(&model(DType::Fp32, &[-1, -1], false), &[0; 16]), &["at most one variable dimension"]);
    refused(decode_raw(&signature(), &[0; 16]), &["one input", "2"]);
}
