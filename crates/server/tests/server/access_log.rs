//! The access log: one line a request of a tenant, and one for each that failed.

use insula_telemetry::AccessLogTarget;

use crate::running_server::{JSON, RunningServer};
use crate::tensors::{request, values};

#[test]
fn each_request_gets_its_line_and_probes_get_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let running = RunningServer::start(|settings| {
        settings.log.access = Some(AccessLogTarget::File(path.clone()));
        settings.drain_delay = std::time::Duration::ZERO;
    });
    let body = request(2, 16, &values(2, 16, 0)).to_string();
    let infer = |id: &str, key: Option<(&'static str, &'static str)>| {
        let mut headers = vec![JSON, ("x-request-id", id)];
        headers.extend(key);
        running.ask("POST", "/v2/models/identity_fp32/infer", &headers, body.as_bytes()).status
    };
    assert_eq!(infer("good-1", None), 200);
    assert_eq!(infer("wrong-1", Some(("x-api-key", "ins_wrong"))), 401);
    assert_eq!(running.ask("GET", "/v2/health/live", &[("x-request-id", "probe-1")], b"").status, 200);
    running.server.stop();
    let log = std::fs::read_to_string(&path).unwrap();
    let line = |id: &str| log.lines().find(|line| line.contains(&format!("request_id={id} "))).map(str::to_owned);
    let good = line("good-1").unwrap();
    for part in [
        "tenant=load-test",
        "model=identity_fp32",
        "status=200",
        "outcome=success",
        &format!("bytes_in={}", body.len()),
    ] {
        assert!(good.contains(part), "{part} in {good}");
    }
    let wrong = line("wrong-1").unwrap();
    assert!(
        wrong.contains("tenant=- ") && wrong.contains("status=401") && wrong.contains("outcome=invalid"),
        "{wrong}"
    );
    assert_eq!(line("probe-1"), None);
}
