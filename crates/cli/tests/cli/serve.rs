//! The first minute of a user: a real server with the example tenants, and the digits that it reads.

use std::fs;

use serde_json::Value;

use crate::insula::{Insula, argument, insula, project};
use crate::server_process::ServerProcess;

const ACME: &str = "ins_demo_acme_corp_0000000000000000000000";
const BETA: &str = "ins_demo_beta_llc_00000000000000000000000";

fn infer(server: &ServerProcess, key: &str, file: &str, options: &[&str]) -> Insula {
    let file = argument(&project(&format!("examples/digits/{file}")));
    insula([&["infer", "digits", &file][..], options].concat())
        .env("INSULA_SERVER", server.url())
        .env("INSULA_KEY", key)
}

/// The elements of output `name` in a JSON answer.
fn output(answer: &Value, name: &str) -> Value {
    let outputs = answer["outputs"].as_array().unwrap();
    outputs.iter().find(|output| output["name"] == name).map(|output| output["data"].clone()).unwrap()
}

#[test]
fn the_ready_line_is_the_only_one_and_a_signal_ends_the_server_well() {
    let server = ServerProcess::start();
    let (http, admin) = (server.address("http"), server.address("admin"));
    assert_eq!(server.ready, format!("insula is ready: http={http} grpc=- admin={admin}\n"));
    assert!(!http.ends_with(":0") && !admin.ends_with(":0"), "{}", server.ready);
    assert_eq!(server.stop(), (Some(0), String::new()));
}

#[test]
fn every_example_image_is_read_right_by_both_tenants() {
    let server = ServerProcess::start();
    let labels = fs::read_to_string(project("examples/digits/images/labels.tsv")).unwrap();
    let files: Vec<_> =
        labels.lines().filter_map(|line| line.split('\t').next().filter(|file| file.ends_with(".png"))).collect();
    assert_eq!(files.len(), 10, "{labels}");
    for (index, file) in files.iter().enumerate() {
        let digit: u64 = file[..1].parse().unwrap();
        let key = [ACME, BETA][index % 2];
        let ended = infer(&server, key, &format!("images/{file}"), &["--scale", "0:16", "-o", "json"]).run();
        assert_eq!((ended.code, ended.words.as_str()), (Some(0), ""), "{file}");
        let answer: Value = serde_json::from_str(&ended.data).unwrap();
        assert_eq!(output(&answer, "digit"), serde_json::json!([digit]), "{file}: {answer}");
    }
}

#[test]
fn people_see_the_digit_its_likeliest_classes_and_the_time() {
    let server = ServerProcess::start();
    let ended = infer(&server, ACME, "images/7_2.png", &["--scale", "0:16"]).run();
    assert_eq!((ended.code, ended.words.as_str()), (Some(0), ""));
    let lines: Vec<_> = ended.data.lines().collect();
    assert!(lines[0].starts_with("digits version 1, request "), "{}", ended.data);
    assert!(lines[1].starts_with("output         type   shape    values"), "{}", ended.data);
    assert!(ended.data.contains("top 3: 7 ("), "{}", ended.data);
    assert!(lines.iter().any(|line| line.starts_with("digit ") && line.ends_with(" [1]      7")), "{}", ended.data);
    let time = lines.last().unwrap();
    for name in ["time: ", "queue ", "device ", "total ", "round trip "] {
        assert!(time.contains(name), "{time}");
    }
}

#[test]
fn an_image_that_went_with_a_scale_nobody_chose_is_told_so() {
    let server = ServerProcess::start();
    let ended = infer(&server, ACME, "images/7_2.png", &["--output", "digit"]).run();
    assert_eq!(ended.code, Some(0), "{}", ended.words);
    assert_eq!(
        ended.words,
        "note: dark to light went as 0:1; if the model expects other values, give `--scale MIN:MAX`\n"
    );
}

#[test]
fn json_requests_go_by_file_and_by_the_standard_input() {
    let server = ServerProcess::start();
    let all = infer(&server, ACME, "all_digits.json", &["-o", "json", "--output", "digit"]).run();
    let answer: Value = serde_json::from_str(&all.data).unwrap();
    assert_eq!(output(&answer, "digit"), serde_json::json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), "{answer}");
    assert_eq!(answer["outputs"].as_array().unwrap().len(), 1);
    let seven = fs::read(project("examples/digits/seven.json")).unwrap();
    let ended =
        insula(["infer", "digits", "-", "--server", &server.url(), "--key", ACME, "-o", "json"]).input(&seven).run();
    let answer: Value = serde_json::from_str(&ended.data).unwrap();
    assert_eq!((output(&answer, "digit"), &answer["id"]), (serde_json::json!([7]), &Value::from("seven")));
}

#[test]
fn what_the_server_refuses_ends_with_its_words_and_a_hint() {
    let server = ServerProcess::start();
    let unknown_key = infer(&server, "ins_nobody", "seven.json", &[]).run();
    assert_eq!((unknown_key.code, unknown_key.data.as_str()), (Some(1), ""));
    assert!(unknown_key.words.contains("\nhint: a key was sent: "), "{}", unknown_key.words);
    let unknown_version = infer(&server, ACME, "seven.json", &["--model-version", "77"]).run();
    assert_eq!(unknown_version.code, Some(1));
    assert!(
        unknown_version.words.contains("77") && unknown_version.words.contains("\nhint: "),
        "{}",
        unknown_version.words
    );
    let unknown_output = infer(&server, ACME, "seven.json", &["--output", "number"]).run();
    assert_eq!(unknown_output.code, Some(1));
    assert!(
        unknown_output.words.contains("number") && unknown_output.words.contains("`digit`"),
        "{}",
        unknown_output.words
    );
}

#[test]
fn the_doctor_finds_a_server_that_runs_already_and_does_not_call_it_bad() {
    let server = ServerProcess::start();
    let (tenants, models) = (argument(&project("tenants")), argument(&project("examples/models")));
    let folders = ["doctor", "-o", "json", "--tenants", &tenants, "--models", &models];
    let ports = ["--http", server.address("http"), "--admin", server.address("admin")];
    let ended = insula([&folders[..], &ports].concat()).run();
    let report: Value = serde_json::from_str(&ended.data).unwrap();
    for what in ["http port", "admin port"] {
        let finding = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == what).unwrap();
        assert_eq!(finding["level"], "warn", "{finding}");
        assert!(finding["value"].as_str().unwrap().ends_with(" is taken"), "{finding}");
    }
}
