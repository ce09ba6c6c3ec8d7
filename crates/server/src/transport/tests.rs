//! The stream, the lingering close, the workers and the listener over real sockets, with the smallest HTTP service that
//! shows their promises. What needs keys, models or routes is tested by the crate's integration tests.

use std::cell::Cell;
use std::convert::Infallible;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_http::body::{BodySize, BoxBody, MessageBody};
use actix_http::{HttpService, Request, Response, StatusCode};
use actix_service::{Service, ServiceFactory, fn_service};
use bytes::Bytes;
use tokio::sync::Notify;

use super::connection::{Connection, RequestInWork};
use super::listener::Listener;
use super::listening::Listening;
use super::stream::{Stream, StreamLimits};
use super::workers::{MakeService, Workers};

const SECOND: Duration = Duration::from_secs(1);
const LIMITS: StreamLimits =
    StreamLimits { head: SECOND, response_stall: Duration::from_millis(300), response_total: Duration::from_secs(20) };

/// What the handlers of one test server share with the test.
#[derive(Debug, Default)]
struct Seen {
    started: AtomicUsize,
    ended: AtomicUsize,
    release: Notify,
}

struct TestServer {
    listening: Option<Listening>,
    seen: Arc<Seen>,
}

impl TestServer {
    fn start(limit: usize) -> TestServer {
        TestServer::named("test-http", limit, Duration::from_secs(60))
    }

    fn with_head_timeout(limit: usize, head: Duration) -> TestServer {
        TestServer::named("test-http", limit, head)
    }

    fn named(name: &str, limit: usize, head: Duration) -> TestServer {
        let seen = Arc::new(Seen::default());
        let shared = seen.clone();
        let limits = StreamLimits { head, ..LIMITS };
        let workers = Workers::start(name, 1, limits, move || make_service(shared.clone(), head)).unwrap();
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), "http").unwrap();
        let listening = Listening::start(name, listener, limit, workers).unwrap();
        TestServer { listening: Some(listening), seen }
    }

    fn listening(&self) -> &Listening {
        self.listening.as_ref().unwrap()
    }

    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.listening().address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    fn close_listener(&mut self) {
        self.listening.as_mut().unwrap().close();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.finish();
        }
    }
}

type Handler =
    Box<dyn Service<Stream, Response = (), Error = String, Future = Pin<Box<dyn Future<Output = Result<(), String>>>>>>;

fn make_service(seen: Arc<Seen>, head: Duration) -> MakeService<Handler> {
    Box::pin(async move {
        let http = HttpService::build()
            .h1_allow_half_closed(false)
            .client_request_timeout(head)
            .on_connect_ext(|stream: &Stream, data| {
                data.insert(stream.connection().clone());
            })
            .h1(fn_service(move |request: Request| answer(request, seen.clone())));
        let http = std::rc::Rc::new(http.new_service(()).await.map_err(|()| "no service".to_owned())?);
        let handler: Handler = Box::new(fn_service(move |stream: Stream| {
            let peer = stream.connection().peer();
            let serving = http.call((stream, Some(peer)));
            Box::pin(async move { serving.await.map_err(|error| error.to_string()) })
                as Pin<Box<dyn Future<Output = Result<(), String>>>>
        }));
        Ok(handler)
    })
}

async fn answer(mut request: Request, seen: Arc<Seen>) -> Result<Response<BoxBody>, Infallible> {
    let connection = request.conn_data::<Arc<Connection>>().unwrap().clone();
    let work = RequestInWork::begin(&connection, request.head().headers().contains_key("content-length"));
    let counted = Counted::new(&seen);
    let (status, body) = match request.path() {
        "/refuse" => (StatusCode::UNAUTHORIZED, Bytes::from_static(b"no")),
        "/echo" => {
            work.read_body();
            let mut payload = request.take_payload();
            let mut taken = Vec::new();
            while let Some(Ok(chunk)) = futures_util::StreamExt::next(&mut payload).await {
                taken.extend_from_slice(&chunk);
            }
            work.body_taken();
            (StatusCode::OK, Bytes::from(taken))
        }
        "/wait" => {
            seen.release.notified().await;
            (StatusCode::OK, Bytes::from_static(b"done"))
        }
        "/large" => return Ok(Response::ok().set_body(BoxBody::new(Endless { _work: work, _counted: counted }))),
        _ => (StatusCode::OK, Bytes::from_static(b"ok")),
    };
    let body = Once { bytes: Cell::new(Some(body)), _work: work };
    Ok(Response::new(status).set_body(BoxBody::new(body)))
}

struct Counted(Arc<Seen>);

impl Counted {
    fn new(seen: &Arc<Seen>) -> Counted {
        seen.started.fetch_add(1, Ordering::SeqCst);
        Counted(seen.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

struct Once {
    bytes: Cell<Option<Bytes>>,
    _work: RequestInWork,
}

impl MessageBody for Once {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        let bytes = self.bytes.take();
        let length = bytes.as_ref().map_or(0, Bytes::len);
        self.bytes.set(bytes);
        BodySize::Sized(length as u64)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(self.bytes.take().map(Ok))
    }
}

struct Endless {
    _work: RequestInWork,
    _counted: Counted,
}

impl MessageBody for Endless {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(Some(Ok(Bytes::from_static(&[b'x'; 16384]))))
    }
}

/// Reads until the answer's head and, by its content-length, its body are there.
fn read_answer(socket: &mut TcpStream) -> Result<String, ErrorKind> {
    let (mut text, mut piece) = (Vec::new(), [0u8; 4096]);
    loop {
        let shown = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = shown.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if length.is_none_or(|length| body.len() >= length.trim().parse::<usize>().unwrap()) {
                return Ok(shown);
            }
        }
        match socket.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof),
            Ok(count) => text.extend_from_slice(&piece[..count]),
            Err(error) => return Err(error.kind()),
        }
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_early_refusal_reaches_a_caller_that_goes_on_sending() {
    let server = TestServer::start(10);
    let mut socket = server.connect();
    socket.write_all(b"POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 629145600\r\n\r\n").unwrap();
    let piece = vec![b' '; 1 << 20];
    for _ in 0..48 {
        socket.write_all(&piece).unwrap();
    }
    let answer = read_answer(&mut socket).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    drop(socket);
    wait_until("the connection is given back", || server.listening().open() == 0);
}

#[test]
fn a_taken_body_leaves_the_connection_open_for_the_next_request() {
    let server = TestServer::start(10);
    let mut socket = server.connect();
    let body = "b".repeat(300_000);
    for _ in 0..3 {
        socket
            .write_all(
                format!("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes(),
            )
            .unwrap();
        assert!(read_answer(&mut socket).unwrap().ends_with(&body));
    }
    assert_eq!(server.listening().open(), 1);
}

#[test]
fn a_caller_that_does_not_take_its_answer_is_cut_off_and_the_answer_is_dropped() {
    let server = TestServer::start(10);
    let mut socket = server.connect();
    socket.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    wait_until("the answer begins", || server.seen.started.load(Ordering::SeqCst) == 1);
    wait_until("the answer is dropped", || server.seen.ended.load(Ordering::SeqCst) == 1);
    wait_until("the connection is given back", || server.listening().open() == 0);
}

#[test]
fn a_caller_that_hangs_up_drops_its_request() {
    let server = TestServer::start(100);
    let sockets: Vec<_> = (0..50)
        .map(|_| {
            let mut socket = server.connect();
            socket.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
            socket
        })
        .collect();
    wait_until("all are being worked on", || server.seen.started.load(Ordering::SeqCst) == 50);
    drop(sockets);
    wait_until("all are dropped", || server.seen.ended.load(Ordering::SeqCst) == 50);
}

#[test]
fn a_second_head_that_trickles_is_cut_off() {
    let server = TestServer::with_head_timeout(10, SECOND);
    let mut socket = server.connect();
    socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    read_answer(&mut socket).unwrap();
    socket.write_all(b"GET / HT").unwrap();
    assert!(read_answer(&mut socket).is_err());
}

#[test]
fn a_first_head_that_trickles_is_answered_with_a_timeout() {
    let server = TestServer::with_head_timeout(10, SECOND);
    let mut socket = server.connect();
    socket.write_all(b"GET / HT").unwrap();
    let answer = read_answer(&mut socket).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[test]
fn every_connection_that_was_made_before_the_close_is_answered() {
    let mut server = TestServer::start(1000);
    let mut sockets: Vec<_> = (0..200).map(|_| server.connect()).collect();
    server.close_listener();
    for socket in &mut sockets {
        socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    }
    for socket in &mut sockets {
        assert!(read_answer(socket).unwrap().starts_with("HTTP/1.1 200"));
    }
    assert!(TcpStream::connect(server.listening().address()).is_err());
}

#[test]
fn a_request_that_is_on_its_way_when_its_idle_connection_is_ended_is_answered() {
    let server = TestServer::start(200);
    let mut sockets: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for socket in &mut sockets {
        socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        read_answer(socket).unwrap();
    }
    // the requests lie in the kernel before the end is told, so none may be lost
    for socket in &mut sockets {
        socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    }
    server.listening().end_idle(false);
    for socket in &mut sockets {
        assert!(read_answer(socket).unwrap().starts_with("HTTP/1.1 200"));
    }
    wait_until("all connections have ended", || server.listening().open() == 0);
}

#[test]
fn the_end_closes_idle_connections_and_lets_requests_finish() {
    let mut server = TestServer::start(10);
    let (mut idle, mut busy) = (server.connect(), server.connect());
    idle.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    read_answer(&mut idle).unwrap();
    busy.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    wait_until("the second request is in work", || server.seen.started.load(Ordering::SeqCst) == 2);
    server.close_listener();
    server.listening().end_idle(false);
    assert_eq!(read_answer(&mut idle), Err(ErrorKind::UnexpectedEof));
    server.seen.release.notify_waiters();
    assert!(read_answer(&mut busy).unwrap().starts_with("HTTP/1.1 200"));
    wait_until("all connections have ended", || server.listening().open() == 0);
}

/// Hundredths of a second of processor time that the thread called `name` has used.
fn processor_time(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let named = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name));
    let used = named.map(|task| {
        let stat = std::fs::read_to_string(task.join("stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    });
    used.sum()
}

#[test]
fn a_flood_of_pipelined_requests_costs_no_processor_time_while_the_first_one_waits() {
    let server = TestServer::named("flooded", 10, Duration::from_secs(60));
    let mut socket = server.connect();
    socket.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    wait_until("the request is in work", || server.seen.started.load(Ordering::SeqCst) == 1);
    socket.set_nonblocking(true).unwrap();
    let flood = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10_000);
    while socket.write(&flood).is_ok() {}
    let before = processor_time("flooded-0");
    std::thread::sleep(Duration::from_millis(500));
    let used = processor_time("flooded-0") - before;
    assert!(used < 15, "{used} of 50 hundredths of a second");
    server.seen.release.notify_waiters();
    socket.set_nonblocking(false).unwrap();
    assert!(read_answer(&mut socket).unwrap().starts_with("HTTP/1.1 200"));
}
