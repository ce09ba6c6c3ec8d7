//! Each request is counted once, under names that its caller cannot invent.

use serde_json::json;

use crate::cancellation::counted;
use crate::running_server::{JSON, RunningServer};
use crate::tensors::{request, values};

#[test]
fn refused_requests_are_counted_once_and_not_as_answered() {
    let server = RunningServer::start(|_| {});
    let before = server.metrics();
    for _ in 0..7 {
        server.infer("identity_fp32", &json!({"inputs": []})).error(400);
    }
    let after = server.metrics();
    assert_eq!(counted(&after, "invalid") - counted(&before, "invalid"), 7.0);
    for other in ["success", "refused", "failed", "cancelled", "expired"] {
        assert_eq!(counted(&after, other), counted(&before, other), "{other}");
    }
}

#[test]
fn answered_requests_are_counted_once() {
    let server = RunningServer::start(|_| {});
    for _ in 0..5 {
        assert_eq!(server.infer("identity_fp32", &request(1, 16, &values(1, 16, 0))).status, 200);
    }
    assert_eq!(counted(&server.metrics(), "success"), 5.0);
}

#[test]
fn names_that_callers_invent_never_become_labels() {
    let server = RunningServer::start(|_| {});
    let before = server.metrics();
    let body = request(1, 16, &values(1, 16, 0)).to_string();
    let mut connection = server.connect();
    for turn in 0..300 {
        connection.ask("POST", &format!("/v2/models/made_up_{turn}/infer"), &[JSON], body.as_bytes()).error(404);
        connection.ask("GET", &format!("/nowhere/{turn}"), &[], b"").error(404);
    }
    let wrong = [JSON, ("authorization", "Bearer ins_made_up")];
    server.ask("POST", "/v2/models/made_up_key/infer", &wrong, body.as_bytes()).error(401);
    let after = server.metrics();
    assert!(!after.contains("made_up") && !after.contains("nowhere"));
    assert!(after.len() < before.len() + 4000, "{} bytes became {}", before.len(), after.len());
    assert_eq!(counted(&after, "invalid") - counted(&before, "invalid"), 301.0);
}
