//! What a scraper sees: one outcome a request, series that come and go with what is configured, gauges read at the moment
//! of the scrape, no label that a caller chose, and text that a strict reader accepts in both formats.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod exposition_reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exposition_reader::Scrape;
use insula_core::{Code, Error, ManualClock, ModelName, Outcome, Refusal, TenantId, Version};
use insula_telemetry::{Actor, Metrics, ModelReady, TenantGauges, TenantLifecycle, TenantMetrics};

fn metrics() -> (Metrics, ManualClock) {
    let clock = ManualClock::new();
    (Metrics::new("1.2.3", Arc::new(clock.clone())), clock)
}

fn tenant_id(text: &str) -> TenantId {
    TenantId::new(text).unwrap()
}

fn model_name(text: &str) -> ModelName {
    ModelName::new(text).unwrap()
}

/// Scrapes in both formats, each checked strictly, and compares them.
fn scrape(metrics: &Metrics) -> Scrape {
    let plain = Scrape::of_prometheus(&metrics.render(None));
    let open = Scrape::of_openmetrics(&metrics.render(Some("application/openmetrics-text")));
    assert_eq!(plain.keys(), open.keys());
    for key in plain.keys().into_iter().filter(|key| !key.starts_with("process_")) {
        assert_eq!(plain.value(key), open.value(key), "{key}");
    }
    plain
}

fn outcomes(scrape: &Scrape, tenant: &str, model: &str) -> [f64; 6] {
    Outcome::ALL.map(|outcome| {
        let outcome = outcome.as_str();
        scrape.value(&format!("insula_requests_total{{tenant={tenant},model={model},outcome={outcome}}}"))
    })
}

fn refusal(code: Code, limit: &'static str) -> Error {
    let refusal = Refusal { limit, value: 1.0, used: 1.0, window: Duration::ZERO, retry_after: Duration::ZERO };
    Error::new(code, "refused").with_refusal(refusal)
}

#[test]
fn every_request_has_exactly_one_outcome_whatever_ends_it() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    let model = metrics.register_model(&tenant, &model_name("digits"));
    let begin = || {
        let mut request = tenant.begin_request();
        request.set_model(&model);
        request
    };
    begin().finish(Outcome::Success);
    assert_eq!(begin().fail(&Error::invalid("bad shape")), Outcome::Invalid);
    assert_eq!(begin().fail(&refusal(Code::QuotaExceeded, "queue")), Outcome::Refused);
    assert_eq!(begin().fail(&refusal(Code::Unavailable, "draining")), Outcome::Refused);
    assert_eq!(begin().fail(&Error::internal("a kernel failed", "")), Outcome::Failed);
    assert_eq!(begin().fail(&Error::new(Code::DeadlineExceeded, "late")), Outcome::Expired);
    drop(begin());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _request = begin();
        std::panic::resume_unwind(Box::new("a handler panicked"));
    }));
    assert!(panicked.is_err());
    let scrape = scrape(&metrics);
    // success, invalid, refused, failed, cancelled, expired
    assert_eq!(outcomes(&scrape, "acme", "digits"), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
    assert_eq!(scrape.value("insula_refusals_total{tenant=acme,limit=queue}"), 1.0);
    assert_eq!(scrape.value("insula_refusals_total{tenant=acme,limit=draining}"), 1.0);
    assert_eq!(scrape.value("insula_refusals_total{tenant=acme,limit=memory}"), 0.0);
}

#[test]
fn requests_counted_from_many_threads_are_counted_once_each() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    let model = metrics.register_model(&tenant, &model_name("digits"));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (tenant, model) = (&tenant, &model);
            scope.spawn(move || {
                for _ in 0..5_000 {
                    let mut request = tenant.begin_request();
                    request.set_model(model);
                    request.finish(Outcome::ALL[thread]);
                }
            });
        }
    });
    assert_eq!(outcomes(&scrape(&metrics), "acme", "digits"), [5_000.0; 6]);
}

#[test]
fn durations_are_those_of_requests_that_ran() {
    let (metrics, clock) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    let model = metrics.register_model(&tenant, &model_name("digits"));
    for (outcome, milliseconds) in [(Outcome::Success, 3), (Outcome::Expired, 700), (Outcome::Refused, 1)] {
        let mut request = tenant.begin_request();
        request.set_model(&model);
        clock.advance(Duration::from_millis(milliseconds));
        assert_eq!(request.elapsed(), Duration::from_millis(milliseconds));
        request.finish(outcome);
    }
    let scrape = scrape(&metrics);
    let name = "insula_request_duration_seconds";
    assert_eq!(scrape.value(&format!("{name}_count{{tenant=acme,model=digits}}")), 2.0);
    assert_eq!(scrape.value(&format!("{name}_sum{{tenant=acme,model=digits}}")), 0.703);
    assert_eq!(scrape.value(&format!("{name}_bucket{{tenant=acme,model=digits,le=0.005}}")), 1.0);
    assert_eq!(scrape.value(&format!("{name}_bucket{{tenant=acme,model=digits,le=1}}")), 2.0);
}

#[test]
fn times_rows_and_batches_add_up() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    let model = metrics.register_model(&tenant, &model_name("digits"));
    let batches = metrics.register_batches(&model_name("digits"));
    model.observe_queue_time(Duration::from_millis(2));
    model.add_device_time(Duration::from_micros(1500));
    model.add_device_time(Duration::from_micros(1000));
    tenant.add_host_time(Duration::from_nanos(250));
    tenant.add_free_rows(3);
    batches.observe_rows(5);
    batches.observe_rows(1);
    let scrape = scrape(&metrics);
    assert_eq!(scrape.value("insula_queue_seconds_count{tenant=acme,model=digits}"), 1.0);
    assert_eq!(scrape.value("insula_device_seconds_total{tenant=acme,model=digits}"), 0.0025);
    assert_eq!(scrape.value("insula_host_seconds_total{tenant=acme}"), 2.5e-7);
    assert_eq!(scrape.value("insula_free_rows_total{tenant=acme}"), 3.0);
    assert_eq!(scrape.value("insula_batch_rows_sum{model=digits}"), 6.0);
    assert_eq!(scrape.value("insula_batch_rows_bucket{model=digits,le=4}"), 1.0);
    assert_eq!(scrape.value("insula_batch_rows_bucket{model=digits,le=+Inf}"), 2.0);
}

fn gauges(inflight: u64, models: Vec<ModelReady>) -> TenantGauges {
    TenantGauges {
        lifecycle: TenantLifecycle::Serving,
        inflight_requests: inflight,
        queued_requests: 2,
        domain_used: 100,
        domain_committed: 2 << 20,
        domain_limit: 256 << 20,
        models,
    }
}

#[test]
fn gauges_are_read_when_they_are_scraped() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    let model = metrics.register_model(&tenant, &model_name("digits"));
    let inflight = Arc::new(AtomicU64::new(7));
    let (read, ready) = (inflight.clone(), model.clone());
    tenant.set_gauges(move || {
        let model = ModelReady { model: ready.clone(), version: Version::new(12).unwrap(), ready: true };
        gauges(read.load(Ordering::SeqCst), vec![model])
    });
    let first = scrape(&metrics);
    assert_eq!(first.value("insula_inflight_requests{tenant=acme}"), 7.0);
    assert_eq!(first.value("insula_queued_requests{tenant=acme}"), 2.0);
    assert_eq!(first.value("insula_domain_bytes{tenant=acme,kind=committed}"), 2_097_152.0);
    assert_eq!(first.value("insula_tenant_state{tenant=acme,state=serving}"), 1.0);
    assert_eq!(first.value("insula_tenant_state{tenant=acme,state=draining}"), 0.0);
    assert_eq!(first.value("insula_model_ready{tenant=acme,model=digits,version=12}"), 1.0);
    inflight.store(0, Ordering::SeqCst);
    assert_eq!(scrape(&metrics).value("insula_inflight_requests{tenant=acme}"), 0.0);
}

#[test]
fn a_gauge_of_a_model_that_is_not_registered_is_left_out() {
    let (metrics, _) = metrics();
    let (tenant, other) = (metrics.register_tenant(&tenant_id("acme")), metrics.register_tenant(&tenant_id("beta")));
    let foreign = metrics.register_model(&other, &model_name("secret"));
    let gone = metrics.register_model(&tenant, &model_name("gone"));
    metrics.remove_model(&tenant, &model_name("gone"));
    tenant.set_gauges(move || {
        let version = Version::new(1).unwrap();
        let ready = |model| ModelReady { model, version, ready: true };
        gauges(0, vec![ready(foreign.clone()), ready(gone.clone())])
    });
    assert!(scrape(&metrics).keys_with("insula_model_ready").is_empty());
}

#[test]
fn a_removed_tenant_takes_all_its_series_along() {
    let (metrics, _) = metrics();
    let before = scrape(&metrics);
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    let model = metrics.register_model(&tenant, &model_name("digits"));
    model.observe_queue_time(Duration::from_millis(1));
    tenant.begin_request().finish(Outcome::Invalid);
    let held = Arc::new(());
    let holds = held.clone();
    tenant.set_gauges(move || gauges(Arc::strong_count(&holds) as u64, Vec::new()));
    let late = tenant.begin_request();
    assert!(scrape(&metrics).keys_with("acme").len() > 30);
    metrics.remove_tenant(&tenant_id("acme"));
    assert_eq!(scrape(&metrics).keys(), before.keys());
    assert_eq!(Arc::strong_count(&held), 1, "the tenant's state is still held");
    late.finish(Outcome::Success);
    tenant.begin_request().finish(Outcome::Success);
    assert!(scrape(&metrics).keys_with("acme").is_empty());
}

#[test]
fn who_is_removed_and_comes_back_counts_from_zero_and_who_is_rebuilt_goes_on() {
    let (metrics, _) = metrics();
    let count = |tenant: &TenantMetrics| tenant.begin_request().finish(Outcome::Success);
    let key = "insula_requests_total{tenant=acme,model=unknown,outcome=success}";
    let first = metrics.register_tenant(&tenant_id("acme"));
    count(&first);
    count(&metrics.register_tenant(&tenant_id("acme")));
    assert_eq!(scrape(&metrics).value(key), 2.0);
    metrics.remove_tenant(&tenant_id("acme"));
    let second = metrics.register_tenant(&tenant_id("acme"));
    count(&first);
    count(&second);
    assert_eq!(scrape(&metrics).value(key), 1.0);
}

#[test]
fn a_removed_model_and_the_last_batch_handle_take_their_series_along() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    metrics.register_model(&tenant, &model_name("digits")).observe_queue_time(Duration::ZERO);
    let batches = metrics.register_batches(&model_name("digits"));
    let same = metrics.register_batches(&model_name("digits"));
    batches.observe_rows(1);
    same.observe_rows(1);
    assert_eq!(scrape(&metrics).value("insula_batch_rows_count{model=digits}"), 2.0);
    metrics.remove_model(&tenant, &model_name("digits"));
    drop(batches);
    assert_eq!(scrape(&metrics).keys_with("digits").len(), 9 + 2);
    drop(same);
    assert!(scrape(&metrics).keys_with("digits").is_empty());
}

#[test]
fn what_callers_invent_is_unknown_and_does_not_grow_the_scrape() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("acme"));
    metrics.register_model(&tenant, &model_name("digits"));
    let refuse = || {
        // A key that nobody has, and a model that the tenant does not have.
        metrics.unknown_tenant().begin_request().fail(&Error::new(Code::Unauthenticated, "no such key"));
        tenant.begin_request().fail(&Error::not_found("no model `made-up`"));
    };
    refuse();
    let once = scrape(&metrics);
    (0..300).for_each(|_| refuse());
    let often = scrape(&metrics);
    assert_eq!(once.keys(), often.keys());
    assert_eq!(often.value("insula_requests_total{tenant=unknown,model=unknown,outcome=invalid}"), 301.0);
    assert_eq!(often.value("insula_requests_total{tenant=acme,model=unknown,outcome=invalid}"), 301.0);
}

#[test]
fn names_that_equal_the_label_for_unknown_ones_are_not_rendered_twice() {
    let (metrics, _) = metrics();
    let tenant = metrics.register_tenant(&tenant_id("unknown"));
    let model = metrics.register_model(&tenant, &model_name("unknown"));
    let mut request = tenant.begin_request();
    request.set_model(&model);
    request.finish(Outcome::Success);
    // The strict reader fails on a series that comes twice.
    assert_eq!(outcomes(&scrape(&metrics), "unknown", "unknown")[0], 1.0);
}

#[test]
fn the_servers_own_series_are_there() {
    let (metrics, _) = metrics();
    let worker = metrics.register_worker(0);
    metrics.register_worker(11);
    worker.set_up(true);
    metrics.count_rebuild(Actor::Router);
    let scrape_one = scrape(&metrics);
    assert_eq!(scrape_one.value("insula_worker_up{worker=0}"), 1.0);
    assert_eq!(scrape_one.value("insula_worker_up{worker=11}"), 0.0);
    assert_eq!(scrape_one.value("insula_actor_rebuilds_total{actor=router}"), 1.0);
    assert_eq!(scrape_one.value("insula_actor_rebuilds_total{actor=tenant}"), 0.0);
    assert_eq!(scrape_one.value("insula_build_info{version=1.2.3}"), 1.0);
    assert_eq!(scrape_one.value("insula_config_last_reload_ok"), 1.0);
    assert_eq!(scrape_one.value("insula_access_log_lines_total{result=dropped}"), 0.0);
    assert!(scrape_one.value("process_start_time_seconds") > 1.7e9);
    #[cfg(target_os = "linux")]
    for name in ["process_resident_memory_bytes", "process_threads", "process_open_fds"] {
        assert!(scrape_one.value(name) >= 1.0, "{name}");
    }
    metrics.set_config_reload(false);
    assert_eq!(scrape(&metrics).value("insula_config_last_reload_ok"), 0.0);
}
