//! Every family of the exposition: its name, its sentence and where its figures come from. Who looks for a metric's meaning
//! finds it here.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use super::Metrics;
use super::exposition::FamilyWriter;
use super::histogram::HistogramFigures;
use super::model::{ModelMetrics, ModelSeries};
use super::process::ProcessFigures;
use super::server::Actor;
use super::tenant::{TenantGauges, TenantLifecycle, TenantMetrics};

type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// One tenant as one scrape shows it: everything is read once, so that its families agree.
struct TenantScrape {
    tenant: TenantMetrics,
    models: Vec<ModelMetrics>,
    gauges: Option<TenantGauges>,
}

pub(super) fn write(metrics: &Metrics, writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let read = |tenant: TenantMetrics| {
        let gauges = tenant.series().read_gauges();
        TenantScrape { models: tenant.series().models(), gauges, tenant }
    };
    let tenants: Vec<TenantScrape> = metrics.tenants().into_iter().map(read).collect();
    write_models(&tenants, writer)?;
    write_tenants(&tenants, writer)?;
    write_gauges(&tenants, writer)?;
    write_batches(metrics, writer)?;
    write_server(metrics, writer)?;
    write_telemetry(metrics, writer)?;
    write_process(metrics, writer)
}

/// Every (tenant, model) with what `figure` finds in it.
fn per_model<'a, T>(
    tenants: &'a [TenantScrape],
    figure: impl Fn(&'a ModelSeries) -> Option<T> + Copy,
) -> impl Iterator<Item = (Labels<'a, 2>, T)> {
    tenants.iter().flat_map(move |scrape| {
        let tenant = scrape.tenant.label();
        scrape.models.iter().filter_map(move |model| {
            let labels = [("tenant", tenant), ("model", model.label())];
            figure(model.series()).map(|value| (labels, value))
        })
    })
}

fn write_models(tenants: &[TenantScrape], writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let outcomes = per_model(tenants, Some).flat_map(|([tenant, model], series)| {
        series.outcomes().map(move |(outcome, count)| ([tenant, model, ("outcome", outcome.as_str())], count))
    });
    writer.counters(("insula_requests", "Requests that ended, each once, by outcome"), outcomes)?;
    let help = "From a request's headers to its end, of those that succeeded, failed or expired";
    let durations = per_model(tenants, |series| series.duration.read());
    writer.histograms::<Labels<'_, 2>>(("insula_request_duration_seconds", help), durations)?;
    let queues = per_model(tenants, |series| series.queue.read());
    writer.histograms(("insula_queue_seconds", "Time that requests lay in fair queues"), queues)?;
    let device = per_model(tenants, |series| Some(series.device.seconds()));
    writer.counters(("insula_device_seconds", "Measured device time that was charged"), device)
}

fn write_tenants(tenants: &[TenantScrape], writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let host = tenants.iter().map(|scrape| (tenant_label(scrape), scrape.tenant.series().host.seconds()));
    writer.counters(("insula_host_seconds", "Measured host time: decoding and encoding"), host)?;
    let free = tenants.iter().map(|scrape| (tenant_label(scrape), scrape.tenant.series().free_rows.get()));
    writer.counters(("insula_free_rows", "Rows that rode in padding, free of charge"), free)?;
    let refusals = tenants.iter().flat_map(|scrape| {
        let [tenant] = tenant_label(scrape);
        scrape.tenant.series().refusals.read().map(move |(limit, count)| ([tenant, ("limit", limit)], count))
    });
    writer.counters(("insula_refusals", "Requests that a limit refused, by limit"), refusals)
}

fn tenant_label(scrape: &TenantScrape) -> Labels<'_, 1> {
    [("tenant", scrape.tenant.label())]
}

fn write_gauges(tenants: &[TenantScrape], writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let gauged = || tenants.iter().filter_map(|scrape| Some((scrape.tenant.label(), scrape.gauges.as_ref()?)));
    let inflight = gauged().map(|(tenant, gauges)| ([("tenant", tenant)], gauges.inflight_requests));
    writer.gauges(("insula_inflight_requests", "Requests admitted and not yet answered"), inflight)?;
    let queued = gauged().map(|(tenant, gauges)| ([("tenant", tenant)], gauges.queued_requests));
    writer.gauges(("insula_queued_requests", "Requests waiting in fair queues"), queued)?;
    let bytes = gauged().flat_map(|(tenant, gauges)| {
        let kinds =
            [("used", gauges.domain_used), ("committed", gauges.domain_committed), ("limit", gauges.domain_limit)];
        kinds.map(|(kind, bytes)| ([("tenant", tenant), ("kind", kind)], bytes))
    });
    writer.gauges(("insula_domain_bytes", "Bytes of the tenant's memory domain: used, committed, limit"), bytes)?;
    let states = gauged().flat_map(|(tenant, gauges)| {
        TenantLifecycle::ALL
            .map(|state| ([("tenant", tenant), ("state", state.as_str())], u64::from(state == gauges.lifecycle)))
    });
    writer.gauges(("insula_tenant_state", "1 for the state that the tenant is in, 0 for the others"), states)?;
    let ready = gauged().flat_map(|(tenant, gauges)| gauges.models.iter().map(move |ready| (tenant, ready)));
    let ready: Vec<_> = ready.map(|(tenant, ready)| (tenant, ready, ready.version.to_string())).collect();
    let ready = ready.iter().map(|(tenant, ready, version)| {
        let labels = [("tenant", *tenant), ("model", ready.model.label()), ("version", version.as_str())];
        (labels, u64::from(ready.ready))
    });
    writer.gauges(("insula_model_ready", "Whether the version can answer"), ready)
}

fn write_batches(metrics: &Metrics, writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let batches = metrics.batches();
    let rows = batches.iter().filter_map(|batch| {
        let rows: HistogramFigures = batch.0.rows.read()?;
        Some(([("model", batch.0.model.as_str())], rows))
    });
    writer.histograms(("insula_batch_rows", "Rows of each batch that was run"), rows)
}

fn write_server(metrics: &Metrics, writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let server = metrics.server();
    let workers = server.workers();
    let up = workers.iter().map(|(number, up)| ([("worker", number.as_str())], u64::from(*up)));
    writer.gauges(("insula_worker_up", "Whether the worker takes batches"), up)?;
    let rebuilds = Actor::ALL.map(|actor| ([("actor", actor.as_str())], server.rebuilds(actor).get()));
    writer.counters(("insula_actor_rebuilds", "Actors built again after a failure"), rebuilds)?;
    let config_ok = u64::from(server.config_ok.load(Ordering::Relaxed));
    let help = "Whether the last reading of the configuration was in order";
    writer.gauge(("insula_config_last_reload_ok", help), Some(config_ok))?;
    writer.gauges(("insula_build_info", "The version that runs"), [([("version", server.version())], 1_u64)])
}

fn write_telemetry(metrics: &Metrics, writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let server = metrics.server();
    let lines = [("written", server.access_log_written.get()), ("dropped", server.access_log_dropped.get())];
    let lines = lines.map(|(result, count)| ([("result", result)], count));
    writer.counters(("insula_access_log_lines", "Lines of the access log, written or dropped"), lines)?;
    let spans = [("exported", server.spans_exported.get()), ("lost", server.spans_lost.get())];
    let spans = spans.map(|(result, count)| ([("result", result)], count));
    writer
        .counters(("insula_trace_spans", "Spans handed to the collector, or lost because it did not take them"), spans)
}

fn write_process(metrics: &Metrics, writer: &mut FamilyWriter<'_>) -> fmt::Result {
    let figures = ProcessFigures::read();
    writer.gauge(("process_resident_memory_bytes", "Memory that is resident"), figures.resident_bytes)?;
    writer.gauge(("process_threads", "Threads of the process"), figures.threads)?;
    writer.gauge(("process_open_fds", "Open file descriptors"), figures.open_descriptors)?;
    let started = metrics.0.started.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64());
    writer.gauge(("process_start_time_seconds", "When the server started, in seconds since 1970"), started)
}
