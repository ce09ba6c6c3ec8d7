//! What the server shows of itself: its paths, verbs, metadata, and how it says no.

use serde_json::json;

use crate::running_server::SHARED;

#[test]
fn the_server_and_its_models_describe_themselves() {
    let server = SHARED.ask("GET", "/v2", &[], b"").json();
    assert_eq!(server["name"], "insula");
    assert!(server["extensions"].as_array().unwrap().contains(&json!("binary_tensor_data")));
    let model = SHARED.ask("GET", "/v2/models/identity_fp32/versions/1", &[], b"").json();
    assert_eq!(model["inputs"], json!([{"name": "INPUT0", "datatype": "FP32", "shape": [-1, 16]}]));
    assert_eq!(model["versions"], json!(["1"]));
    let ready = SHARED.ask("GET", "/v2/models/identity_fp32/ready", &[], b"");
    assert_eq!((ready.status, ready.json()), (200, json!({"name": "identity_fp32", "ready": true})));
    let healthy = SHARED.ask("GET", "/v2/health/ready", &[], b"");
    assert_eq!((healthy.status, healthy.json()), (200, json!({"ready": true})));
}

#[test]
fn unknown_paths_are_not_found_and_wrong_verbs_are_told_the_right_ones() {
    for path in ["/", "/v1", "/v2/models", "/v2/models/a/b/c", "/v2/models//infer"] {
        SHARED.ask("GET", path, &[], b"").error(404);
    }
    for (verb, path, allowed) in [
        ("POST", "/v2", "GET, HEAD"),
        ("DELETE", "/v2/models/slow", "GET, HEAD"),
        ("GET", "/v2/models/slow/infer", "POST"),
        ("PUT", "/v2/repository/index", "POST"),
    ] {
        let answer = SHARED.ask(verb, path, &[], b"");
        answer.error(405);
        assert_eq!(answer.header("allow"), Some(allowed), "{verb} {path}");
    }
}

#[test]
fn a_model_that_is_not_this_tenant_s_is_not_found() {
    for path in ["/v2/models/digits", "/v2/models/digits/ready", "/v2/models/%2e%2e", "/v2/models/nope/versions/1"] {
        SHARED.ask("GET", path, &[], b"").error(404);
    }
}

#[test]
fn a_request_id_that_could_confuse_a_log_is_replaced() {
    let usable = SHARED.ask("GET", "/v2", &[("x-request-id", "abc.DEF-1")], b"");
    assert_eq!(usable.header("x-request-id"), Some("abc.DEF-1"));
    for odd in ["with space", &"x".repeat(200)] {
        let answer = SHARED.ask("GET", "/v2", &[("x-request-id", odd)], b"");
        let id = answer.header("x-request-id").unwrap();
        assert!(id != odd && id.len() == 36, "{id}");
    }
}

#[test]
fn one_connection_serves_good_requests_after_bad_ones() {
    let mut connection = SHARED.connect();
    for _ in 0..3 {
        connection.ask("POST", "/v2/models/identity_fp32/infer", &[], b"not json").error(400);
        connection.ask("GET", "/v2/models/nope", &[], b"").error(404);
        assert_eq!(connection.ask("GET", "/v2/models/identity_fp32", &[], b"").status, 200);
    }
}
