//! Models sent by callers: good ones serve, bad ones are refused each time, and neither disturbs what serves already.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::model_files;
use crate::running_server::{JSON, RunningServer, SHARED};
use crate::tensors::{output, values};
use crate::wire::Answer;

fn load(name: &str, files: &[(&str, Vec<u8>)]) -> Answer {
    let mut parameters = json!({"config": json!({"name": name, "backend": "onnx"}).to_string()});
    for (path, bytes) in files {
        parameters[format!("file:{path}")] = json!(STANDARD.encode(bytes));
    }
    let body = json!({"parameters": parameters}).to_string();
    SHARED.ask("POST", &format!("/v2/repository/models/{name}/load"), &[JSON], body.as_bytes())
}

fn unload(name: &str) -> Answer {
    SHARED.ask("POST", &format!("/v2/repository/models/{name}/unload"), &[JSON], b"{}")
}

fn model(bytes: Vec<u8>) -> [(&'static str, Vec<u8>); 1] {
    [("1/model.onnx", bytes)]
}

fn infer(data: &[f32]) -> Value {
    json!({"inputs": [{"name": "x", "shape": [data.len() / 4, 4], "datatype": "FP32", "data": data}]})
}

fn is_ready(name: &str) -> bool {
    SHARED.ask("GET", &format!("/v2/models/{name}/ready"), &[], b"").status == 200
}

#[test]
fn a_model_that_is_sent_serves_until_it_is_unloaded() {
    let answer = load("sent", &model(model_files::identity()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(is_ready("sent"));
    let data = values(2, 4, 1);
    assert_eq!(output(&SHARED.infer("sent", &infer(&data)).json()), data);
    assert_eq!(unload("sent").status, 200);
    assert!(!is_ready("sent"));
    SHARED.infer("sent", &infer(&data)).error(404);
}

#[test]
fn a_broken_model_is_refused_every_time() {
    for _ in 0..2 {
        let message = load("broken", &model(model_files::unknown_operator()));
        let status = message.status;
        assert!((400..500).contains(&status) || status == 501, "{}", message.text());
        assert!(message.error(status).contains("NoSuchOperator"));
        assert!(!is_ready("broken"));
    }
}

#[test]
fn a_failed_reload_leaves_the_old_model_serving_without_a_gap() {
    assert_eq!(load("reloaded", &model(model_files::identity())).status, 200);
    let stop = AtomicBool::new(false);
    let data = values(2, 4, 0);
    let body = infer(&data).to_string();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut connection = SHARED.connect();
                while !stop.load(Ordering::SeqCst) {
                    let answer = connection.ask("POST", "/v2/models/reloaded/infer", &[JSON], body.as_bytes());
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    assert_eq!(output(&answer.json()), data);
                }
            });
        }
        for turn in 0..10 {
            let good = turn % 2 == 0;
            let bytes = if good { model_files::identity() } else { model_files::unknown_operator() };
            assert_eq!(load("reloaded", &model(bytes)).status == 200, good);
        }
        stop.store(true, Ordering::SeqCst);
    });
    unload("reloaded");
}

#[test]
fn external_data_outside_of_the_version_s_folder_is_refused_and_not_quoted() {
    let host = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let outside = [
        "../../../../../../etc/hostname",
        "/etc/hostname",
        "../1/model.onnx",
        "sub/../../w.bin",
        "/proc/self/environ",
        "..\\w.bin",
        "",
    ];
    for location in outside {
        let files = [("1/model.onnx", model_files::external(location)), ("1/w.bin", vec![0; 16])];
        let answer = load("reaching", &files);
        assert!((400..500).contains(&answer.status), "{location:?}: {} {}", answer.status, answer.text());
        assert!(host.trim().is_empty() || !answer.text().contains(host.trim()), "{}", answer.text());
    }
}

#[test]
fn files_that_are_not_whole_are_refused() {
    let partial = [
        ("half", model_files::truncated(50)),
        ("almost", model_files::truncated(97)),
        ("no_graph", model_files::no_graph()),
        ("three_bytes", b"\x08\x07\x12".to_vec()),
        ("empty", Vec::new()),
    ];
    for (name, bytes) in partial {
        let answer = load(&format!("partial_{name}"), &model(bytes));
        assert!((400..500).contains(&answer.status), "{name}: {} {}", answer.status, answer.text());
        answer.error(answer.status);
    }
}

#[test]
fn the_index_lists_the_tenant_s_models_with_their_states() {
    let index = |body: &[u8]| SHARED.ask("POST", "/v2/repository/index", &[JSON], body).json();
    let all = index(b"");
    let versions = all.as_array().unwrap().iter().filter(|entry| entry["name"] == "versions").count();
    assert_eq!(versions, 3, "{all}");
    let ready = index(br#"{"ready": true}"#);
    assert!(ready.as_array().unwrap().iter().all(|entry| entry["state"] == "READY"), "{ready}");
}

#[test]
fn a_load_over_its_limit_is_refused_before_its_body_is_read() {
    let server = RunningServer::start(|settings| settings.requests.load_bytes = 64 << 10);
    let body = vec![b' '; 65 << 10];
    let answer = server.ask("POST", "/v2/repository/models/large/load", &[JSON], &body);
    assert!(answer.error(413).contains("65536"), "{}", answer.text());
}
