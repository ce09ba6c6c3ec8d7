//! What the process says on its standard error, seen from outside: each test runs itself again as a child with tracing set
//! up for real, and reads what the child wrote.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use insula_core::{Code, SystemClock};
use insula_telemetry::{LogFormat, Metrics, OtlpSettings, TelemetryGuard, TracingSettings, WAY, init};
use tracing::{debug, info, info_span, warn};

const CHILD: &str = "INSULA_TEST_CHILD";

/// In the parent: the lines that `test`, run again as a child, wrote to standard error. In the child: `None`.
fn lines_of_child(test: &str) -> Option<Vec<String>> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env_remove("RUST_BACKTRACE")
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(child.stderr).unwrap();
    assert!(child.status.success(), "{text}");
    Some(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn set_up(filter: &str, format: LogFormat, otlp: Option<OtlpSettings>) -> (Metrics, TelemetryGuard) {
    let metrics = Metrics::new("1.2.3", Arc::new(SystemClock::new()));
    let settings = TracingSettings { filter: filter.to_owned(), format, otlp };
    let guard = init(&settings, &metrics).unwrap();
    (metrics, guard)
}

#[test]
fn lines_are_text_and_the_filter_holds() {
    let Some(lines) = lines_of_child("lines_are_text_and_the_filter_holds") else {
        let (_, guard) = set_up("warn,shown=info", LogFormat::Text, None);
        warn!(port = 8000, "a warning");
        info!("not shown");
        info!(target: "shown::deeper", "shown because of its target");
        return guard.shutdown(Duration::ZERO).unwrap();
    };
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains(" WARN ") && lines[0].ends_with("a warning port=8000"), "{lines:?}");
    assert!(lines[1].contains(" INFO shown::deeper: shown because"), "{lines:?}");
    assert!(!lines[0].contains('\u{1b}'), "colours without a terminal");
}

#[test]
fn lines_are_json_objects_if_asked() {
    let Some(lines) = lines_of_child("lines_are_json_objects_if_asked") else {
        let (_, guard) = set_up("debug", LogFormat::Json, None);
        debug!(tenant = "acme", rows = 3, "a line\nwith a break");
        return guard.shutdown(Duration::ZERO).unwrap();
    };
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(line["level"], "DEBUG");
    assert_eq!(line["message"], "a line\nwith a break");
    assert_eq!((&line["tenant"], &line["rows"]), (&"acme".into(), &3.into()));
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn spans_are_off_without_a_collector_whatever_the_filter_says() {
    let Some(lines) = lines_of_child("spans_are_off_without_a_collector_whatever_the_filter_says") else {
        let (metrics, _guard) = set_up("trace,insula=trace,insula::way=trace", LogFormat::Text, None);
        assert!(info_span!(target: WAY, "infer_request").is_disabled());
        assert!(!tracing::enabled!(target: WAY, tracing::Level::ERROR));
        let again = init(&TracingSettings::default(), &metrics).unwrap_err();
        assert_eq!(again.code(), Code::Conflict);
        return;
    };
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn a_collector_that_is_not_there_costs_one_warning_and_the_spans() {
    let Some(lines) = lines_of_child("a_collector_that_is_not_there_costs_one_warning_and_the_spans") else {
        return export_to_nobody();
    };
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("spans could not be exported and are lost"), "{lines:?}");
    assert!(lines[0].to_lowercase().contains("refused"), "the reason is not named: {lines:?}");
}

/// Exports three posts' worth of spans to a port where nobody listens.
fn export_to_nobody() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{address}");
    let otlp = OtlpSettings { endpoint, timeout: Duration::from_secs(5), sample_ratio: 1.0 };
    let (metrics, guard) = set_up("info", LogFormat::Text, Some(otlp));
    let lost = || {
        let scrape = metrics.render(None).body;
        let count = scrape.lines().find_map(|line| line.strip_prefix("insula_trace_spans_total{result=\"lost\"} "));
        count.unwrap().parse::<u64>().unwrap()
    };
    for post in 1..=3 {
        (0..512).for_each(|_| info_span!(target: WAY, "infer_request").in_scope(|| ()));
        while lost() < post * 512 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    guard.shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(lost(), 3 * 512);
}

#[test]
fn a_collector_that_does_not_answer_does_not_hold_up_the_end() {
    let Some(lines) = lines_of_child("a_collector_that_does_not_answer_does_not_hold_up_the_end") else {
        // The system completes connections to it, and nobody ever reads them.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let otlp = OtlpSettings { endpoint, timeout: Duration::from_secs(600), sample_ratio: 1.0 };
        let (_, guard) = set_up("info", LogFormat::Text, Some(otlp));
        info_span!(target: WAY, "infer_request").in_scope(|| ());
        let begun = Instant::now();
        let error = guard.shutdown(Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.message(), "not all spans were exported within 50 ms");
        assert!(begun.elapsed() < Duration::from_secs(300));
        return;
    };
    assert!(lines.is_empty(), "{lines:?}");
}
