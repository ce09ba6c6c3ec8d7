//! Callers that trickle their request or do not take their answer: bounded, and their tenant gets its places back.

use std::time::{Duration, Instant};

use crate::cancellation::counted;
use crate::running_server::{JSON, RunningServer};
use crate::tensors::{binary, binary_input, request, values};
use crate::wire::head;

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_body_that_stops_coming_is_answered_408_by_the_name_of_the_setting() {
    let server = RunningServer::start(|settings| settings.requests.body_idle = SHORT);
    let mut connection = server.connect();
    connection.send(head("POST", "/v2/models/identity_fp32/infer", &[JSON, ("content-length", "100")]));
    connection.send(b"{\"inputs\":");
    let answer = connection.answer().unwrap();
    assert!(answer.error(408).contains("requests.body_idle"), "{}", answer.text());
    assert_eq!(answer.json()["code"], "deadline_exceeded");
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn a_body_that_trickles_is_answered_408_when_its_time_is_up() {
    let server = RunningServer::start(|settings| {
        settings.requests.body_idle = Duration::from_secs(30);
        settings.requests.body_total = SHORT;
    });
    let mut connection = server.connect();
    connection.send(head("POST", "/v2/models/identity_fp32/infer", &[JSON, ("content-length", "100000")]));
    let begun = Instant::now();
    while begun.elapsed() < SHORT * 2 {
        connection.send(b" ");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(connection.answer().unwrap().error(408).contains("requests.body_total"));
}

#[test]
fn a_first_head_that_trickles_is_answered_408() {
    let server = RunningServer::start(|settings| settings.requests.header_timeout = SHORT);
    let mut connection = server.connect();
    connection.send(b"GET /v2 HT");
    assert_eq!(connection.answer().unwrap().status, 408);
    assert!(connection.is_closed());
}

#[test]
fn an_answer_that_is_not_taken_is_cut_off_and_counted_as_cancelled() {
    let server = RunningServer::start(|settings| settings.requests.response_stall = SHORT);
    // larger than what the kernel holds for a caller that does not read
    let text = vec![b'z'; 12 << 20];
    let element = [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], &text].concat();
    let tail = [element, 0u32.to_le_bytes().to_vec()].concat();
    let mut description = serde_json::json!({"inputs": [binary_input("BYTES", &[1, 2], tail.len())]});
    description["outputs"] = serde_json::json!([{"name": "OUTPUT0", "parameters": {"binary_data": true}}]);
    let (body, length) = binary(&description, &tail);
    let headers = [("inference-header-content-length", length.as_str()), ("content-length", &body.len().to_string())];
    let mut connection = server.connect();
    connection.send([head("POST", "/v2/models/identity_bytes/infer", &headers).into_bytes(), body].concat());
    let end = Instant::now() + Duration::from_secs(60);
    while counted(&server.metrics(), "cancelled") < 1.0 {
        assert!(Instant::now() < end, "the answer was not cut off");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(connection.answer().is_err());
    assert_eq!(server.infer("identity_fp32", &request(1, 16, &values(1, 16, 0))).status, 200);
}

#[test]
fn an_answer_that_is_taken_slowly_arrives_whole() {
    let server = RunningServer::start(|settings| settings.requests.response_stall = Duration::from_secs(5));
    let text = vec![b'z'; 8 << 20];
    let element = [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], &text].concat();
    let tail = [element, 0u32.to_le_bytes().to_vec()].concat();
    let mut description = serde_json::json!({"inputs": [binary_input("BYTES", &[1, 2], tail.len())]});
    description["outputs"] = serde_json::json!([{"name": "OUTPUT0", "parameters": {"binary_data": true}}]);
    let (body, length) = binary(&description, &tail);
    let headers = [("inference-header-content-length", length.as_str())];
    let answer = server.ask("POST", "/v2/models/identity_bytes/infer", &headers, &body);
    assert_eq!(answer.status, 200);
    assert!(answer.body.ends_with(&tail));
}
