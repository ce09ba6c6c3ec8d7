//! The description of a request: its fields, their kinds, and what is said of each that is wrong. Tensor data has a file of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use insula_core::{Code, DType, Dimension, ModelSignature, TensorSpec};

use crate::memory::{Decoded, decode_json};

/// A batched model: `x` FP32 [-1,4] and `s` BYTES [-1,1] in, `y` and `z` out.
pub fn signature() -> Arc<ModelSignature> {
    let spec = |name: &str, dtype, columns| TensorSpec {
        name: name.into(),
        dtype,
        dims: vec![Dimension::Symbolic("batch".into()), Dimension::Fixed(columns)],
    };
    let inputs = vec![spec("x", DType::Fp32, 4), spec("s", DType::Bytes, 1)];
    let outputs = vec![spec("y", DType::Fp32, 4), spec("z", DType::Bytes, 1)];
    Arc::new(ModelSignature { inputs, outputs, batched: true, max_batch: 8 })
}

const X: &str = r#"{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2.5,-3,4e0]}"#;
const S: &str = r#"{"name":"s","shape":[1,1],"datatype":"BYTES","data":["hi"]}"#;

fn request(more: &str) -> String {
    format!("{{\"inputs\":[{X},{S}]{more}}}")
}

fn decode(body: &str) -> Decoded {
    decode_json(&signature(), body).unwrap()
}

/// What is said of `body`, which must be refused with `code`.
fn refused_with(code: Code, body: &str) -> String {
    let error = decode_json(&signature(), body).err().unwrap_or_else(|| panic!("{body} was accepted"));
    assert_eq!(error.code(), code, "{error}");
    error.message().to_owned()
}

#[track_caller]
fn refused(body: &str, named: &[&str]) {
    let message = refused_with(Code::InvalidArgument, body);
    for name in named {
        assert!(message.contains(name), "{message:?} does not name {name:?}");
    }
}

#[test]
fn a_plain_request_gives_its_tensors_in_the_models_order() {
    let decoded = decode(&format!("{{\"inputs\":[{S},{X}]}}"));
    let floats: Vec<u8> = [1.0f32, 2.5, -3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(decoded.bytes(0), floats);
    assert_eq!(decoded.bytes(1), b"\x02\0\0\0hi");
    assert_eq!(decoded.request.rows(), 1);
    assert_eq!(decoded.request.outputs().len(), 2);
    assert_eq!(decoded.steps, 1);
}

#[test]
fn keys_may_come_in_any_order_with_any_whitespace_and_escapes() {
    let body = "\n{ \"outputs\" : [ ] ,\t\"in\\u0070uts\" : [ { \"data\" : [ [ 1 , 2.5 , -3 , 4e0 ] ] , \"datatype\":\"FP\\u00332\",\
                \"shape\":[1,4],\"name\":\"\\u0078\"}, {\"datatype\":\"BYTES\",\"data\":[\"h\\u0069\"],\"name\":\"s\",\"shape\":[1,1]} ] }\r\n";
    let decoded = decode(body);
    assert_eq!(decoded.bytes(0), decode(&request("")).bytes(0));
    assert_eq!(decoded.bytes(1), b"\x02\0\0\0hi");
}

#[test]
fn unknown_keys_are_passed_over_but_must_be_json() {
    decode(&request(
        r#","model_name":"m","x":{"a":[1,{"b":null}],"c":"d"},"x":1e999,"parameters":{"headers":[{}],"triton_y":1}"#,
    ));
    refused(&request(r#","x":[1,]"#), &["byte"]);
    refused(&request(r#","x":{"a" 1}"#), &["`:`"]);
    refused(&request(r#","x":"\ud800""#), &["surrogate"]);
}

#[test]
fn the_body_must_be_one_json_object() {
    for (body, named) in [("", "ends"), ("[]", "object"), ("7", "object"), ("{}", "`x` is missing"), ("nul", "a value")]
    {
        refused(body, &[named]);
    }
    refused(&request("")[..50], &["ends"]);
}

#[test]
fn bytes_after_the_text_point_to_the_missing_length_header() {
    refused(&(request("") + "\0\0\0"), &["3 bytes follow", "Inference-Header-Content-Length"]);
    refused(
        &request("").replace("\"data\":[1,2.5,-3,4e0]", "\"parameters\":{\"binary_data_size\":16}"),
        &["input `x`", "Inference-Header-Content-Length"],
    );
}

#[test]
fn meaningful_keys_may_come_only_once() {
    refused(&request(r#","inputs":[]"#), &["`inputs`", "twice"]);
    refused(
        &request("").replace("\"shape\":[1,4]", "\"shape\":[1,4],\"sh\\u0061pe\":[1,4]"),
        &["`shape`", "input `x`", "twice"],
    );
    refused(&request(r#","parameters":{"priority":1,"priority":1}"#), &["`priority`", "twice"]);
}

#[test]
fn ids_are_strings_of_at_most_256_bytes() {
    decode(&request(&format!(",\"id\":\"{}\"", "é".repeat(128))));
    refused(&request(&format!(",\"id\":\"{}\"", "é".repeat(129))), &["`id`", "256"]);
    refused(&request(&format!(",\"id\":\"{}\"", "x".repeat(100_000))), &["`id`", "256"]);
    refused(&request(",\"id\":7"), &["`id`", "a number"]);
}

#[test]
fn request_parameters_are_read_and_their_kinds_checked() {
    let decoded = decode(&request(r#","parameters":{"priority":3,"timeout":1500,"binary_data_output":true}"#));
    assert_eq!((decoded.request.priority, decoded.request.timeout), (3, Some(Duration::from_micros(1500))));
    assert_eq!(decode(&request(r#","parameters":{"timeout":0}"#)).request.timeout, None);
    for (parameter, value) in [
        ("priority", "-1"),
        ("priority", "1.0"),
        ("priority", "\"1\""),
        ("priority", "4294967296"),
        ("timeout", "-1"),
        ("timeout", "18446744073709551616"),
        ("timeout", "null"),
        ("binary_data_output", "1"),
        ("sequence_start", "0"),
        ("sequence_id", "true"),
    ] {
        refused(&request(&format!(",\"parameters\":{{\"{parameter}\":{value}}}")), &[parameter]);
    }
    refused(&request(r#","parameters":[]"#), &["`parameters`", "an array"]);
}

#[test]
fn optional_fields_may_be_null_and_required_ones_may_not() {
    decode(&request(r#","id":null,"parameters":null,"outputs":null"#));
    refused(r#"{"inputs":null}"#, &["`inputs`", "null"]);
    refused(&request("").replace("\"shape\":[1,4]", "\"shape\":null"), &["`shape`", "null"]);
}

#[test]
fn sequences_are_unsupported_unless_they_mean_none() {
    decode(&request(r#","parameters":{"sequence_id":0,"sequence_start":false,"sequence_end":false}"#));
    decode(&request(r#","parameters":{"sequence_id":""}"#));
    for parameter in
        [r#""sequence_id":7"#, r#""sequence_id":"a""#, r#""sequence_start":true"#, r#""sequence_end":true"#]
    {
        let message = refused_with(Code::Unsupported, &request(&format!(",\"parameters\":{{{parameter}}}")));
        assert!(message.contains("sequence_"), "{message}");
    }
}

#[test]
fn shared_memory_and_classification_are_unsupported_by_name() {
    let input = request("").replace("\"data\":[1,2.5,-3,4e0]", r#""parameters":{"shared_memory_region":"r"}"#);
    let message = refused_with(Code::Unsupported, &input);
    assert!(message.contains("shared_memory_region") && message.contains("input `x`"), "{message}");
    for parameter in ["classification", "shared_memory_offset"] {
        let output = request(&format!(",\"outputs\":[{{\"name\":\"y\",\"parameters\":{{\"{parameter}\":1}}}}]"));
        let message = refused_with(Code::Unsupported, &output);
        assert!(message.contains(parameter) && message.contains("output `y`"), "{message}");
    }
}

#[test]
fn names_must_be_the_models() {
    refused(&request("").replace("\"name\":\"x\"", "\"name\":\"w\""), &["\"w\"", "`x`", "`s`"]);
    refused(&request(r#","outputs":[{"name":"no_such"}]"#), &["no_such", "`y`", "`z`"]);
    let long = "w".repeat(100_000);
    let message =
        refused_with(Code::InvalidArgument, &request("").replace("\"name\":\"x\"", &format!("\"name\":\"{long}\"")));
    assert!(message.len() < 300, "{message}");
}

#[test]
fn inputs_and_outputs_come_once_and_all_inputs_come() {
    refused(&format!("{{\"inputs\":[{X},{X},{S}]}}"), &["input `x`", "twice"]);
    refused(&format!("{{\"inputs\":[{X}]}}"), &["input `s`", "missing"]);
    refused(&request(r#","outputs":[{"name":"y"},{"name":"z"},{"name":"y"}]"#), &["output `y`", "twice"]);
}

#[test]
fn outputs_are_answered_in_the_order_asked_for() {
    let decoded =
        decode(&request(r#","outputs":[{"name":"z","parameters":{"binary_data":true,"other":1}},{"name":"y"}]"#));
    let outputs: Vec<_> = decoded.request.outputs().iter().map(|wanted| wanted.output).collect();
    assert_eq!(outputs, [1, 0]);
    refused(&request(r#","outputs":[{"name":"y","parameters":{"binary_data":1}}]"#), &["binary_data", "output `y`"]);
    refused(&request(r#","outputs":[{}]"#), &["output number 0", "`name`"]);
    refused(&request(r#","outputs":["y"]"#), &["`outputs`", "a string"]);
}

#[test]
fn an_inputs_fields_must_all_be_there_and_of_their_kind() {
    for (from, to, named) in [
        ("\"name\":\"x\",", "", "`name`"),
        ("\"datatype\":\"FP32\",", "", "`datatype`"),
        ("\"shape\":[1,4],", "", "`shape`"),
        (",\"data\":[1,2.5,-3,4e0]", "", "`data`"),
        ("\"FP32\"", "\"fp32\"", "FP32"),
        ("\"FP32\"", "\"FP64\"", "FP32"),
        ("\"FP32\"", "32", "`datatype`"),
        ("[1,4]", "\"1,4\"", "`shape`"),
        ("[1,4]", "[1,4.0]", "4.0"),
        ("[1,4]", "[1,\"4\"]", "`shape`"),
        ("[1,4]", "[1,99999999999999999999]", "99999999999999999999"),
        ("[1,4]", "[-1,4]", "dimension 0"),
        ("[1,4]", "[1,-4]", "dimension 1"),
        ("[1,4]", "[0,4]", "dimension 0"),
        ("[1,4]", "[1,4,1]", "3 dimensions"),
        ("[1,4]", "[1,1,1,1,1,1,1,1,1]", "more than 8"),
        ("[1,4]", "[]", "0 dimensions"),
        ("[1,4]", "[9223372036854775807,4]", "overflow"),
    ] {
        assert!(X.contains(from));
        refused(&format!("{{\"inputs\":[{},{S}]}}", X.replacen(from, to, 1)), &[named]);
    }
    refused(r#"{"inputs":{}}"#, &["`inputs`", "an object"]);
    refused(r#"{"inputs":[[]]}"#, &["`inputs`", "array of objects"]);
}

#[test]
fn deep_nesting_is_refused_wherever_it_stands() {
    for depth in [200, 100_000, 1_000_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        for body in [
            open.clone(),
            format!("{open}{close}"),
            format!("{{\"inputs\":[{},{S}]}}", X.replace("[1,2.5,-3,4e0]", &format!("{open}{close}"))),
            format!("{{\"inputs\":[{{\"data\":{open}{close}}}]}}"),
            format!("{{\"parameters\":{}1{}}}", "{\"a\":".repeat(depth), "}".repeat(depth)),
        ] {
            refused(&body, &[]);
        }
    }
}

#[test]
fn a_request_with_more_rows_than_the_model_takes_is_refused() {
    let data = ["0"; 36].join(",");
    let body = format!(
        "{{\"inputs\":[{{\"name\":\"x\",\"shape\":[9,4],\"datatype\":\"FP32\",\"data\":[{data}]}},\
         {{\"name\":\"s\",\"shape\":[9,1],\"datatype\":\"BYTES\",\"data\":[{}]}}]}}",
        ["\"\""; 9].join(",")
    );
    refused(&body, &["9 rows", "8"]);
}
