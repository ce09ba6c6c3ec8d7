//! Callers that go away: what they asked for leaves the queue.

use std::time::{Duration, Instant};

use crate::running_server::{JSON, RunningServer};
use crate::tensors::{request, values};
use crate::wire::head;

/// The sum of the requests that were counted with `outcome`.
pub fn counted(metrics: &str, outcome: &str) -> f64 {
    let wanted = format!("outcome=\"{outcome}\"");
    let lines = metrics.lines().filter(|line| line.starts_with("insula_requests_total{") && line.contains(&wanted));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn hang_ups_leave_the_queue_and_are_counted_as_cancelled() {
    let server = RunningServer::start(|_| {});
    let body = request(8, 16, &values(8, 16, 0)).to_string();
    let headers = [JSON, ("content-length", &body.len().to_string())];
    let bytes = [head("POST", "/v2/models/slow/infer", &headers).into_bytes(), body.clone().into_bytes()].concat();
    let callers: Vec<_> = (0..300)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&bytes);
            connection
        })
        .collect();
    drop(callers);
    assert_eq!(server.infer("identity_fp32", &request(1, 16, &values(1, 16, 0))).status, 200);
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let metrics = server.metrics();
        let (cancelled, ran) = (counted(&metrics, "cancelled"), counted(&metrics, "success"));
        if cancelled + ran >= 301.0 {
            assert!(cancelled >= 250.0, "{cancelled} of 300 were cancelled");
            break;
        }
        assert!(Instant::now() < end, "{cancelled} cancelled and {ran} answered of 300");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_caller_that_ends_its_side_gets_its_answer_only_where_half_closed_connections_are_allowed() {
    let body = request(1, 16, &values(1, 16, 0)).to_string();
    for allowed in [false, true] {
        let server = RunningServer::start(|settings| settings.half_closed = allowed);
        let mut connection = server.connect();
        let headers = [JSON, ("content-length", &body.len().to_string())];
        connection
            .send([head("POST", "/v2/models/slow/infer", &headers).into_bytes(), body.clone().into_bytes()].concat());
        connection.end_sending();
        assert_eq!(connection.answer().is_ok(), allowed);
    }
}
