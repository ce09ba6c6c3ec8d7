//! More than the tenant or the server takes: refused, never dropped.

use std::collections::BTreeSet;

use crate::running_server::{JSON, RunningServer, SHARED};
use crate::tensors::{request, values};
use crate::wire::head;

#[test]
fn many_at_once_are_answered_or_refused_with_a_time_to_come_back() {
    let body = request(4, 16, &values(4, 16, 0)).to_string();
    let statuses: BTreeSet<u16> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = SHARED.connect();
                    let answers = (0..10)
                        .map(|_| connection.ask("POST", "/v2/models/identity_fp32/infer", &[JSON], body.as_bytes()));
                    answers
                        .inspect(|answer| assert!(answer.status != 429 || answer.header("retry-after").is_some()))
                        .map(|answer| answer.status)
                        .collect::<BTreeSet<_>>()
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    assert!(statuses.is_subset(&BTreeSet::from([200, 429, 503])), "{statuses:?}");
    assert!(statuses.contains(&200));
}

#[test]
fn one_connection_too_many_is_refused_with_the_limit() {
    let server = RunningServer::start(|settings| settings.max_connections = 3);
    let mut open: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for connection in &mut open {
        assert_eq!(connection.ask("GET", "/v2/health/live", &[], b"").status, 200);
    }
    let mut fourth = server.connect();
    let answer = fourth.ask("GET", "/v2", &[], b"");
    assert!(answer.error(503).contains("max_connections"), "{}", answer.text());
    assert_eq!(answer.json()["reason"]["limit"], "server_connections");
    assert!(answer.header("retry-after").is_some());
    assert!(fourth.is_closed());
}

#[test]
fn a_refusal_on_expectation_comes_before_the_body() {
    let mut refused = SHARED.connect();
    let expecting =
        [JSON, ("content-length", "1000"), ("expect", "100-continue"), ("authorization", "Bearer ins_wrong")];
    refused.send(head("POST", "/v2/models/identity_fp32/infer", &expecting));
    refused.answer().unwrap().error(401);

    let body = request(1, 16, &values(1, 16, 0)).to_string();
    let length = body.len().to_string();
    let mut admitted = SHARED.connect();
    let expecting = [JSON, ("content-length", length.as_str()), ("expect", "100-continue")];
    for _ in 0..2 {
        admitted.send(head("POST", "/v2/models/identity_fp32/infer", &expecting));
        assert_eq!(admitted.answer().unwrap().status, 100);
        admitted.send(&body);
        assert_eq!(admitted.answer().unwrap().status, 200);
    }
}
