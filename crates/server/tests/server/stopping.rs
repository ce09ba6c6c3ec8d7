//! The stop: readiness first, then the listener, then the rest; nobody who is being served is reset.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::running_server::{JSON, KEY, RunningServer};
use crate::tensors::{request, values};
use crate::wire::Connection;

/// What one caller saw.
fn ask_once(connection: &mut Option<Connection>, address: std::net::SocketAddr, body: &str) -> String {
    let mut open = match connection.take().map_or_else(|| Connection::try_open(address), Ok) {
        Ok(open) => open,
        Err(ErrorKind::ConnectionRefused) => return "refused".to_owned(),
        Err(other) => return format!("connect: {other}"),
    };
    match open.try_ask("POST", "/v2/models/slow/infer", &[JSON], body.as_bytes()) {
        Ok(answer) => {
            if answer.header("connection") != Some("close") {
                *connection = Some(open);
            }
            answer.status.to_string()
        }
        Err(error) => format!("reset: {error}"),
    }
}

#[test]
fn callers_see_answers_refusals_or_a_closed_port_and_never_a_reset() {
    let running = RunningServer::start(|settings| settings.drain_delay = Duration::from_millis(1500));
    let (http, admin) = (running.server.addresses().http, running.server.addresses().admin);
    let body = request(4, 16, &values(4, 16, 0)).to_string();
    let (done, seen) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = None;
                while !done.load(Ordering::SeqCst) {
                    let what = ask_once(&mut connection, http, &body);
                    seen.lock().unwrap().insert(what);
                }
            });
        }
        let probe = |address, path: &str| {
            let mut connection = Connection::open(address);
            connection.ask("GET", path, &[("x-api-key", KEY)], b"").status
        };
        while !seen.lock().unwrap().contains("200") {
            std::thread::sleep(Duration::from_millis(10));
        }
        let stopping = scope.spawn(|| running.server.stop());
        while probe(http, "/v2/health/ready") == 200 {
            std::thread::yield_now();
        }
        assert_eq!(probe(http, "/v2/health/live"), 200);
        assert_eq!((probe(admin, "/readyz"), probe(admin, "/livez")), (503, 200));
        let stopped = stopping.join().unwrap();
        done.store(true, Ordering::SeqCst);
        assert_eq!(stopped.unfinished, 0);
    });
    let seen = seen.into_inner().unwrap();
    let fine = BTreeSet::from(["200", "503", "refused"]);
    assert!(seen.iter().all(|what| fine.contains(what.as_str())), "{seen:?}");
    assert!(Connection::try_open(http).is_err() && Connection::try_open(admin).is_err());
}

#[test]
fn an_idle_connection_is_told_the_end_at_its_next_answer() {
    let running = RunningServer::start(|settings| settings.drain_delay = Duration::from_secs(5));
    let mut idle = running.connect();
    assert_eq!(idle.ask("GET", "/v2", &[], b"").header("connection"), None);
    let hurried = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| {
            running.server.stop_unless(&mut |wait| {
                let end = Instant::now() + wait;
                while Instant::now() < end && !hurried.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                hurried.load(Ordering::SeqCst)
            })
        });
        let mut answer = idle.ask("GET", "/v2/health/ready", &[], b"");
        while answer.status == 200 {
            answer = idle.ask("GET", "/v2/health/ready", &[], b"");
        }
        assert_eq!((answer.status, answer.header("connection")), (503, Some("close")));
        assert!(idle.is_closed());
        hurried.store(true, Ordering::SeqCst);
        stopping.join().unwrap();
    });
}

#[test]
fn a_stopped_server_leaves_no_thread_behind() {
    let has_thread = |wanted: &str| {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.into_iter().any(|name| name.trim() == wanted)
    };
    // no other test's server has as many threads, so this one's last thread can be told from theirs
    let running = RunningServer::start(|settings| {
        settings.drain_delay = Duration::ZERO;
        settings.http_workers = Some(29);
    });
    assert!(has_thread("http-28"));
    running.server.stop();
    assert!(!has_thread("http-28"));
}
