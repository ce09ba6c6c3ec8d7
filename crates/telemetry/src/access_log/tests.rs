//! The access log against a real pipe and real files: its lines, that it drops rather than waits, that shutting down is
//! bounded and loses nothing uncounted.

use std::io::{self, BufRead, BufReader};
use std::sync::mpsc;
use std::time::SystemTime;

use insula_core::{ModelName, Outcome, RequestId, SystemClock, TenantId};

use super::*;

fn metrics() -> Metrics {
    Metrics::new("0.0.0", Arc::new(SystemClock::new()))
}

fn record(id: &str) -> AccessRecord {
    AccessRecord {
        time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_083_200_250),
        request_id: RequestId::from_caller(id),
        tenant: Some(TenantId::new("acme-corp").unwrap()),
        model: Some(ModelName::new("digits").unwrap()),
        status: Some(200),
        outcome: Outcome::Success,
        bytes_in: 784,
        bytes_out: 61,
        queue: Duration::from_micros(120),
        device: Duration::from_nanos(2_400_400),
        total: Duration::from_millis(3),
        remote: Some("[::1]:51000".parse().unwrap()),
    }
}

fn counts(metrics: &Metrics) -> (u64, u64) {
    (metrics.server().access_log_written.get(), metrics.server().access_log_dropped.get())
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_line_says_it_all_in_text() {
    let mut lines = String::new();
    record("r-1").write_line(LogFormat::Text, &mut lines);
    assert_eq!(
        lines,
        "time=2026-12-01T00:00:00.250Z request_id=r-1 tenant=acme-corp model=digits status=200 outcome=success \
         bytes_in=784 bytes_out=61 queue_ms=0.120 device_ms=2.400 total_ms=3.000 remote=[::1]:51000\n"
    );
}

#[test]
fn a_line_says_it_all_in_json() {
    let mut lines = String::new();
    record("r-1").write_line(LogFormat::Json, &mut lines);
    assert_eq!(
        lines,
        "{\"time\":\"2026-12-01T00:00:00.250Z\",\"request_id\":\"r-1\",\"tenant\":\"acme-corp\",\"model\":\"digits\",\
         \"status\":200,\"outcome\":\"success\",\"bytes_in\":784,\"bytes_out\":61,\"queue_ms\":0.12,\"device_ms\":2.4,\
         \"total_ms\":3.0,\"remote\":\"[::1]:51000\"}\n"
    );
}

#[test]
fn what_is_not_known_is_a_dash_or_null_and_callers_ids_are_escaped() {
    let bare = AccessRecord {
        tenant: None,
        model: None,
        status: None,
        outcome: Outcome::Cancelled,
        remote: None,
        ..record("a\"b=c")
    };
    let mut lines = String::new();
    bare.write_line(LogFormat::Text, &mut lines);
    assert!(lines.contains(" request_id=\"a\\\"b=c\" tenant=- model=- status=- outcome=cancelled "), "{lines}");
    assert!(lines.ends_with(" remote=-\n"), "{lines}");
    lines.clear();
    bare.write_line(LogFormat::Json, &mut lines);
    let json: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(json["request_id"], "a\"b=c");
    assert!(json["tenant"].is_null() && json["status"].is_null() && json["remote"].is_null());
}

#[test]
fn every_line_is_in_the_file_after_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, "what was there\n").unwrap();
    let metrics = metrics();
    let settings = AccessLogSettings { target: AccessLogTarget::File(path.clone()), format: LogFormat::Text };
    let log = AccessLog::start(&settings, &metrics).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = log.clone();
            scope.spawn(move || (0..2000).for_each(|n| log.record(record(&format!("r-{thread}-{n}")))));
        }
    });
    log.shutdown(LONG).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("what was there\ntime="));
    assert_eq!(text.lines().count(), 8001);
    for thread in 0..4 {
        let ids =
            text.lines().filter_map(|line| line.split(' ').nth(1)?.strip_prefix(&format!("request_id=r-{thread}-")));
        assert!(ids.eq((0..2000).map(|n| n.to_string())), "the lines of thread {thread} are not in order");
    }
    assert_eq!(counts(&metrics), (8000, 0));
}

#[test]
fn a_resting_writer_is_woken_by_the_next_record() {
    let (reader, writer) = io::pipe().unwrap();
    let metrics = metrics();
    let log = AccessLog::start_with(Box::new(writer), LogFormat::Text, 16, &metrics).unwrap();
    let mut lines = BufReader::new(reader).lines();
    for n in 0..50 {
        log.record(record(&format!("r-{n}")));
        // Arrives although nothing else happens; the writer may be resting or gathering at this moment.
        assert!(lines.next().unwrap().unwrap().contains(&format!("request_id=r-{n} ")));
    }
    log.shutdown(LONG).unwrap();
    assert!(lines.next().is_none());
}

/// A pipe whose reader does not read: a write does not return until the test lets go of `stuck`.
struct FullPipe {
    entered: mpsc::Sender<()>,
    stuck: mpsc::Receiver<()>,
    pipe: io::PipeWriter,
}

impl Write for FullPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.entered.send(());
        let _ = self.stuck.recv();
        self.pipe.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

#[test]
fn a_reader_that_does_not_read_costs_lines_and_no_time() {
    let (reader, pipe) = io::pipe().unwrap();
    let ((entered, has_entered), (let_go, stuck)) = (mpsc::channel(), mpsc::channel());
    let metrics = metrics();
    let target = Box::new(FullPipe { entered, stuck, pipe });
    let log = AccessLog::start_with(target, LogFormat::Text, 64, &metrics).unwrap();
    log.record(record("first"));
    has_entered.recv().unwrap();
    // The writer is stuck now: if `record` waited for room, this would never end.
    (0..20_000).for_each(|n| log.record(record(&format!("r-{n}"))));
    assert_eq!(counts(&metrics), (0, 20_000 - 64));
    let error = log.shutdown(Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.message(), "64 lines of the access log were not written within 10 ms");
    drop(let_go);
    log.shutdown(LONG).unwrap();
    assert_eq!(counts(&metrics), (65, 20_000 - 64));
    drop(log);
    assert_eq!(BufReader::new(reader).lines().count(), 65);
}

#[test]
fn after_shutdown_lines_are_dropped_and_counted() {
    let (reader, writer) = io::pipe().unwrap();
    let metrics = metrics();
    let log = AccessLog::start_with(Box::new(writer), LogFormat::Text, 16, &metrics).unwrap();
    log.record(record("early"));
    log.shutdown(LONG).unwrap();
    log.shutdown(LONG).unwrap();
    log.record(record("late"));
    assert_eq!(counts(&metrics), (1, 1));
    assert_eq!(BufReader::new(reader).lines().count(), 1);
}

#[test]
fn a_target_that_fails_costs_its_lines_only() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let metrics = metrics();
    let log = AccessLog::start_with(Box::new(writer), LogFormat::Text, 16, &metrics).unwrap();
    log.record(record("r-1"));
    log.record(record("r-2"));
    log.shutdown(LONG).unwrap();
    assert_eq!(counts(&metrics), (0, 2));
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let path = PathBuf::from("/no-such-folder/access.log");
    let settings = AccessLogSettings { target: AccessLogTarget::File(path), format: LogFormat::Json };
    let error = AccessLog::start(&settings, &metrics()).unwrap_err();
    assert!(error.message().starts_with("the access log /no-such-folder/access.log cannot be opened"), "{error}");
}
