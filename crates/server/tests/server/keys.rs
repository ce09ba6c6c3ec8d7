//! Who may ask: keys in both headers, none, wrong ones, and many wrong ones.

use std::time::{Duration, Instant};

use crate::running_server::{JSON, KEY, RunningServer, SHARED};
use crate::wire::head;

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
    let server = RunningServer::start(|settings| settings.http_workers = Some(1));
    let wrong = head("GET", "/v2/models/slow", &[("x-api-key", "ins_wrong")]);
    let mut guessers: Vec<_> = (0..40).map(|_| server.connect()).collect();
    let begun = Instant::now();
    for guesser in &mut guessers {
        guesser.send(&wrong);
    }
    // the last guesser's answer waits for a second; a good key on the same thread is not kept waiting with it
    let mut last = guessers.pop().unwrap();
    assert_eq!(server.ask("GET", "/v2/models/slow", &[], b"").status, 200);
    assert!(last.has_nothing_to_read());
    last.answer().unwrap().error(401);
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    for guesser in &mut guessers {
        guesser.answer().unwrap().error(401);
    }
}
