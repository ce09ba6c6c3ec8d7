//! Who may ask: keys in both headers, none, wrong ones, and many wrong ones.

use std::time::{Duration, Instant};

use crate::running_server::{JSON, KEY, RunningServer, SHARED};
use crate::wire::Connection;

#[test]
fn a_key_is_taken_from_either_header() {
    let bearer = format!("bearer {KEY}");
    for header in [("authorization", bearer.as_str()), ("x-api-key", KEY)] {
        assert_eq!(SHARED.ask("GET", "/v2/models/slow", &[header], b"").status, 200);
    }
}

#[test]
fn without_a_good_key_nothing_of_a_tenant_is_shown() {
    let paths = [
        ("GET", "/v2/models/slow"),
        ("GET", "/v2/models/slow/ready"),
        ("POST", "/v2/models/slow/infer"),
        ("POST", "/v2/repository/index"),
        ("POST", "/v2/repository/models/slow/load"),
        ("POST", "/v2/repository/models/slow/unload"),
    ];
    for (verb, path) in paths {
        for key in [("x-api-key", ""), ("authorization", "Basic eDp5"), ("x-api-key", "ins_wrong")] {
            let answer = SHARED.ask(verb, path, &[key, JSON], b"");
            answer.error(401);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{verb} {path}");
        }
    }
}

#[test]
fn health_and_the_server_s_metadata_need_no_key() {
    for path in ["/v2", "/v2/health/live", "/v2/health/ready"] {
        assert_eq!(SHARED.ask("GET", path, &[("x-api-key", "")], b"").status, 200, "{path}");
    }
}

#[test]
fn many_wrong_keys_are_answered_ever_later_while_good_ones_are_not() {
    let server = RunningServer::start(|_| {});
    let wrong = |key: &str| server.ask("GET", "/v2/models/slow", &[("x-api-key", key)], b"").error(401);
    for _ in 0..20 {
        wrong("ins_wrong");
    }
    let begun = Instant::now();
    wrong("ins_wrong");
    wrong("ins_wrong");
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| (0..3).for_each(|_| drop(wrong("ins_wrong"))));
        let mut good = Connection::open(server.server.addresses().http);
        let mut served = 0;
        while !waiting.is_finished() {
            assert_eq!(good.ask("GET", "/v2/models/slow", &[], b"").status, 200);
            served += 1;
        }
        assert!(served > 3, "only {served} were served while three wrong keys waited");
    });
}
