//! `insula infer` where it cannot succeed: nobody listens, the server refuses, the answer is none, the file does not fit.

use std::net::TcpListener;

use crate::fake_server::{FakeServer, json};
use crate::insula::{Ended, argument, insula, project};

const REQUEST: &[u8] = br#"{"inputs": []}"#;

fn infer_from(url: &str, options: &[&str]) -> Ended {
    insula([&["infer", "digits", "-", "--server", url][..], options].concat()).input(REQUEST).run()
}

#[test]
fn where_nobody_listens_the_hint_says_how_to_start_a_server() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = infer_from(&format!("http://{free}"), &[]);
    assert_eq!((ended.code, ended.data.as_str()), (Some(3), ""));
    let words = format!(
        "error: no server listens at http://{free}\n\
         hint: start one with `insula serve`, or name another with `--server URL` or `INSULA_SERVER`\n"
    );
    assert_eq!(ended.words, words);
}

#[test]
fn a_refusal_is_shown_with_what_to_do_about_it() {
    let refusal = r#"{"error": "no key was given", "code": "unauthenticated", "request_id": "r-1"}"#;
    let server = FakeServer::start(vec![json("401 Unauthorized", refusal)]);
    let ended = infer_from(&server.url, &[]);
    assert_eq!((ended.code, ended.data.as_str()), (Some(1), ""));
    let words = "error: no key was given (request r-1)\n\
                 hint: give a key with `--key KEY` or `INSULA_KEY`; those of the example tenants stand in `tenants/*.toml`\n";
    assert_eq!(ended.words, words);
    let asked = server.asked();
    assert!(asked[0].head.starts_with("POST /v2/models/digits/infer HTTP/1.1\r\n"), "{}", asked[0].head);
    assert_eq!(asked[0].body, REQUEST);
}

#[test]
fn the_key_goes_with_the_request_and_shows_nowhere_else() {
    let refusal = r#"{"error": "the key is not known", "code": "unauthenticated", "request_id": "r-2"}"#;
    let server = FakeServer::start(vec![json("401 Unauthorized", refusal)]);
    let arguments = ["infer", "digits", "-", "--server", &server.url, "--model-version", "3"];
    let ended = insula(arguments).env("INSULA_KEY", "ins_secret").input(REQUEST).run();
    assert!(ended.words.contains("hint: a key was sent: check"), "{}", ended.words);
    assert!(!ended.words.contains("ins_secret"), "{}", ended.words);
    let head = server.asked().remove(0).head;
    assert!(head.to_ascii_lowercase().contains("\r\nauthorization: bearer ins_secret\r\n"), "{head}");
    assert!(head.starts_with("POST /v2/models/digits/versions/3/infer "), "{head}");
}

#[test]
fn a_refusal_by_quota_says_when_to_come_back() {
    let refusal = r#"{"error": "50 requests a second", "code": "quota_exceeded", "request_id": "r-3",
        "reason": {"limit": "requests_per_second", "value": 50.0, "used": 50.0, "window_ms": 1000, "retry_after_ms": 20}}"#;
    let server = FakeServer::start(vec![json("429 Too Many Requests", refusal)]);
    let ended = infer_from(&server.url, &["--key", "ins_k"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.words, "error: 50 requests a second (request r-3)\nhint: try again in 20 ms\n");
}

#[test]
fn what_speaks_no_http_is_no_server() {
    let server = FakeServer::start(vec![b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()]);
    let ended = infer_from(&server.url, &[]);
    assert_eq!(ended.code, Some(3), "{}", ended.words);
    assert!(ended.words.starts_with("error: ") && ended.words.contains(&server.url), "{}", ended.words);
}

#[test]
fn an_answer_that_is_no_inference_is_refused() {
    let server = FakeServer::start(vec![json("200 OK", r#"{"hello": "world"}"#)]);
    let ended = infer_from(&server.url, &["-o", "json"]);
    assert_eq!((ended.code, ended.data.as_str()), (Some(1), ""));
    assert!(ended.words.starts_with("error: the server's answer cannot be read: "), "{}", ended.words);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let ended = infer_from(&url, &["--timeout", "0.2"]);
    assert_eq!(ended.code, Some(3));
    assert_eq!(
        ended.words,
        format!("error: {url} gave no answer within 0.2 s\nhint: wait longer with `--timeout SECONDS`\n")
    );
}

#[test]
fn a_file_that_is_missing_or_of_another_kind_is_wrong_use() {
    let missing = insula(["infer", "digits", "seven.png"]).run();
    assert_eq!(missing.code, Some(2));
    assert!(missing.words.starts_with("error: seven.png cannot be read: "), "{}", missing.words);
    let text = insula(["infer", "digits", "notes.txt"]).file("notes.txt", "hello").run();
    assert_eq!(text.code, Some(2));
    assert!(
        text.words.starts_with("error: notes.txt is neither a PNG image nor a JSON request\nhint: "),
        "{}",
        text.words
    );
}

#[test]
fn an_image_of_another_size_is_refused_with_both_sizes_and_not_sent() {
    let metadata = r#"{"name": "m", "versions": ["1"], "platform": "onnx_onnxv1", "outputs": [],
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 28, 28]}]}"#;
    let server = FakeServer::start(vec![json("200 OK", metadata)]);
    let image = argument(&project("examples/digits/images/7_2.png"));
    let ended = insula(["infer", "m", &image, "--server", &server.url]).run();
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.words.starts_with("error: the image is 8 x 8 (width x height) and the model takes 28 x 28\n"),
        "{}",
        ended.words
    );
    assert!(server.asked()[0].head.starts_with("GET /v2/models/m HTTP/1.1\r\n"));
}
