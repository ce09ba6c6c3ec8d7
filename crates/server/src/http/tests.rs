//! The front over real sockets, with handlers that go wrong in ways that no real one should, and a server whose house does
//! not stand yet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, Resource};
use insula_core::SystemClock;
use insula_telemetry::Metrics;

use super::{HttpOptions, make_service, routes};
use crate::settings::RequestLimits;
use crate::state::{ServerState, StateParts};
use crate::transport::listener::Listener;
use crate::transport::listening::Listening;
use crate::transport::stream::StreamLimits;
use crate::transport::workers::Workers;

const LONG: Duration = Duration::from_secs(60);

fn listen(configure: fn(&mut ServiceConfig)) -> Listening {
    let clock = Arc::new(SystemClock::new());
    let metrics = Metrics::new("test", clock.clone());
    let parts = StateParts { limits: RequestLimits::default(), clock, metrics, access_log: None, admin_token: None };
    let state = ServerState::new(parts);
    let limits = StreamLimits { head: LONG, response_stall: LONG, response_total: LONG };
    let options = HttpOptions { header_timeout: LONG, keep_alive: LONG, half_closed: false };
    let make = move || make_service(state.clone(), options, configure);
    let workers = Workers::start("test-front", 1, limits, make).unwrap();
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), "http").unwrap();
    Listening::start("test-front", listener, 10, workers).unwrap()
}

/// Sends `request` and returns what comes until its body, by its length, is complete.
fn ask(socket: &mut TcpStream, request: &str) -> String {
    socket.write_all(request.as_bytes()).unwrap();
    let (mut text, mut piece) = (Vec::new(), [0u8; 4096]);
    loop {
        let shown = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = shown.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return shown;
            }
        }
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0, "closed after {shown:?}");
        text.extend_from_slice(&piece[..count]);
    }
}

fn failing(config: &mut ServiceConfig) {
    let panics = || async { panic!("secret of the handler") as HttpResponse };
    let refuses = || async { Err::<HttpResponse, _>(actix_web::error::ErrorImATeapot("src/secret.rs")) };
    let resource = |path: &str| -> Resource { web::resource(path) };
    config
        .service(resource("/panics").to(panics))
        .service(resource("/refuses").to(refuses))
        .service(resource("/good").to(|| async { HttpResponse::Ok().body("good") }));
}

#[test]
fn a_handler_that_panics_fails_only_its_own_request() {
    let listening = listen(failing);
    let mut socket = TcpStream::connect(listening.address()).unwrap();
    for _ in 0..3 {
        let answer = ask(&mut socket, "GET /panics HTTP/1.1\r\nhost: x\r\nx-request-id: mine-1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        assert!(answer.contains("\"request_id\":\"mine-1\"") && answer.contains("\"code\":\"internal\""), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
        assert!(ask(&mut socket, "GET /good HTTP/1.1\r\nhost: x\r\n\r\n").ends_with("good"));
    }
    listening.finish();
}

#[test]
fn an_error_that_is_not_ours_shows_nothing_of_itself() {
    let listening = listen(failing);
    let mut socket = TcpStream::connect(listening.address()).unwrap();
    let answer = ask(&mut socket, "GET /refuses HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 500") && !answer.contains("secret"), "{answer}");
    listening.finish();
}

#[test]
fn a_server_that_is_starting_lives_and_refuses_with_a_time_to_come_back() {
    let listening = listen(routes::configure);
    let mut socket = TcpStream::connect(listening.address()).unwrap();
    assert!(ask(&mut socket, "GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(ask(&mut socket, "GET /v2/health/ready HTTP/1.1\r\nhost: x\r\n\r\n").starts_with("HTTP/1.1 503"));
    let infer = "POST /v2/models/m/infer HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: 2\r\n\r\n{}";
    let answer = ask(&mut socket, infer);
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1") && answer.contains("\"limit\":\"starting\""), "{answer}");
    listening.finish();
}
