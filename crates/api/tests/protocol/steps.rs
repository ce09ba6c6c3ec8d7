//! That a step ends when its budget is used up, whatever stands in the body: no caller can make one step long.

use insula_api::{ContentEncoding, RequestFormat};
use insula_core::DType;

use crate::memory::decode_packed;
use crate::packed_requests::gzip;
use crate::tensor_data::any_shape;

const SIZE: usize = 200_000;
const BUDGET: usize = 1000;

/// Decodes `body` in small steps and checks that there were as many as `bytes` of work need.
#[track_caller]
fn takes_its_steps(dtype: DType, body: &str, bytes: usize) {
    let signature = any_shape(dtype, 1);
    let decode = |encoding, body: &[u8]| {
        decode_packed(RequestFormat::Json, encoding, &signature, 1 << 20, body, BUDGET)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    // tokens are not cut, but none of these is longer than a few bytes
    let fewest = bytes / (BUDGET + 20);
    let steps = decode(ContentEncoding::Identity, body.as_bytes()).steps;
    assert!((fewest..2 * fewest + 10).contains(&steps), "{steps} steps, at least {fewest} are needed");
    let unpacking = body.len() / (BUDGET + 20);
    let packed = decode(ContentEncoding::Gzip, &gzip(body.as_bytes())).steps;
    assert!(packed >= fewest + unpacking, "{packed} steps when packed, at least {} are needed", fewest + unpacking);
}

fn request(dtype: DType, count: usize, data: &str, before: &str) -> String {
    format!("{{{before}\"inputs\":[{{\"name\":\"x\",\"shape\":[{count}],\"datatype\":\"{dtype}\",\"data\":{data}}}]}}")
}

#[test]
fn long_arrays_are_read_in_steps() {
    let data = format!("[{}]", vec!["7"; SIZE / 2].join(","));
    takes_its_steps(DType::Uint8, &request(DType::Uint8, SIZE / 2, &data, ""), SIZE);
}

#[test]
fn long_strings_are_read_in_steps() {
    for text in ["a".repeat(SIZE), "é".repeat(SIZE / 2), "\\n".repeat(SIZE / 2)] {
        takes_its_steps(DType::Bytes, &request(DType::Bytes, 1, &format!("[\"{text}\"]"), ""), SIZE);
        takes_its_steps(DType::Uint8, &request(DType::Uint8, 1, "[1]", &format!("\"unknown\":\"{text}\",")), SIZE);
    }
}

#[test]
fn whitespace_is_read_in_steps() {
    let space = " ".repeat(SIZE);
    takes_its_steps(DType::Uint8, &(space.clone() + &request(DType::Uint8, 1, "[1]", "")), SIZE);
    takes_its_steps(DType::Uint8, &request(DType::Uint8, 1, &format!("[{space}1]"), ""), SIZE);
    takes_its_steps(DType::Uint8, &(request(DType::Uint8, 1, "[1]", "") + &space), SIZE);
}

#[test]
fn values_without_meaning_are_passed_over_in_steps() {
    let values = vec!["{\"a\":[null]}"; SIZE / 13].join(",");
    takes_its_steps(DType::Uint8, &request(DType::Uint8, 1, "[1]", &format!("\"unknown\":[{values}],")), SIZE - 13);
}

#[test]
fn data_before_its_shape_is_read_in_steps_both_times() {
    let data = vec!["7"; SIZE / 2].join(",");
    let body = format!(
        "{{\"inputs\":[{{\"data\":[{data}],\"name\":\"x\",\"shape\":[{}],\"datatype\":\"UINT8\"}}]}}",
        SIZE / 2
    );
    takes_its_steps(DType::Uint8, &body, 2 * SIZE);
}

#[test]
fn a_whole_body_of_one_budget_is_read_in_one_step() {
    let body = request(DType::Uint8, 3, "[1,2,3]", "");
    let decoded = decode_packed(
        RequestFormat::Json,
        ContentEncoding::Identity,
        &any_shape(DType::Uint8, 1),
        0,
        body.as_bytes(),
        BUDGET,
    );
    assert_eq!(decoded.unwrap().steps, 1);
}
