//! Spans of the way of a request reach a collector: a real listener on the loopback takes the post and finds in it what the
//! OTLP format must hold. Its own process, since tracing is set up once in one.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use insula_core::SystemClock;
use insula_telemetry::{Metrics, OtlpSettings, RemoteParent, TracingSettings, WAY, init};
use tracing::info_span;

/// One post, as the collector got it.
struct Post {
    head: String,
    body: Vec<u8>,
}

/// Answers every post on `listener` with `200 OK` and hands it on.
fn collect(listener: TcpListener, posts: mpsc::Sender<Post>) {
    for stream in listener.incoming() {
        let posts = posts.clone();
        std::thread::spawn(move || answer(stream.unwrap(), &posts));
    }
}

fn answer(stream: TcpStream, posts: &mpsc::Sender<Post>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(post) = read_post(&mut reader) {
        let _ = posts.send(post);
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        (&stream).write_all(answer.as_bytes()).unwrap();
    }
}

fn read_post(reader: &mut impl BufRead) -> Option<Post> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Post { head, body })
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[test]
fn finished_spans_reach_the_collector_under_the_callers_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, posts) = mpsc::channel();
    std::thread::spawn(move || collect(listener, sender));
    let metrics = Metrics::new("1.2.3", Arc::new(SystemClock::new()));
    // No traces of its own are kept, so what arrives was kept because the caller keeps it.
    let otlp = OtlpSettings { endpoint, timeout: Duration::from_secs(20), sample_ratio: 0.0 };
    let guard = init(&TracingSettings { otlp: Some(otlp), ..TracingSettings::default() }, &metrics).unwrap();

    let parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent = RemoteParent::from_headers([&parent[..]], [&b"vendor=state"[..]]).unwrap();
    {
        let request = info_span!(target: WAY, "infer_request", tenant = "acme");
        parent.attach(&request);
        let _entered = request.enter();
        info_span!(target: WAY, "run_batch", rows = 3_u64).in_scope(|| {
            info_span!("span_of_another_target").in_scope(|| ());
        });
    }
    info_span!(target: WAY, "span_nobody_keeps").in_scope(|| ());
    guard.shutdown(Duration::from_secs(60)).unwrap();

    let post = posts.try_recv().expect("shutdown waits until the spans are out");
    assert!(post.head.starts_with("post /v1/traces http/1.1\r\n"), "{}", post.head);
    assert!(post.head.contains("content-type: application/x-protobuf\r\n"), "{}", post.head);
    for part in ["infer_request", "run_batch", "tenant", "acme", "service.name", "insula", "1.2.3", "vendor=state"] {
        assert!(contains(&post.body, part.as_bytes()), "{part} was not exported");
    }
    let trace = 0x0af7651916cd43dd8448eb211c80319c_u128.to_be_bytes();
    assert!(contains(&post.body, &trace) && contains(&post.body, &0xb7ad6b7169203331_u64.to_be_bytes()));
    assert!(!contains(&post.body, b"span_of_another_target") && !contains(&post.body, b"span_nobody_keeps"));
    assert!(posts.try_recv().is_err());
    let scrape = metrics.render(None).body;
    assert!(scrape.contains("insula_trace_spans_total{result=\"exported\"} 2\n"), "{scrape}");
}
