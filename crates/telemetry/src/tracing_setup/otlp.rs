//! Trace export: spans leave the request's thread through a bounded queue, a thread of the SDK's posts them as OTLP over
//! HTTP. What cannot be exported is dropped and counted, and warned of once a minute; a request never waits for it.

use std::time::Duration;

use insula_core::{Code, Error, Result};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use parking_lot::Mutex;
use tracing::{Subscriber, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::WAY;
use super::collector_client::CollectorClient;
use crate::metrics::Metrics;
use crate::warning_gate::WarningGate;

/// Finished spans that wait to be exported, at most; further ones are dropped.
const QUEUED_SPANS_MAX: usize = 8192;

/// Spans in one post, at most.
const BATCH_SPANS_MAX: usize = 512;

/// The longest a finished span waits for a post to fill.
const EXPORT_DELAY: Duration = Duration::from_secs(2);

/// Where and how spans are exported.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpSettings {
    /// The collector's address, `http://HOST:PORT`; spans go to `/v1/traces` there unless it has a path of its own.
    pub endpoint: String,
    /// The longest a post may take.
    pub timeout: Duration,
    /// The share of traces begun here that are kept, 0 to 1. Callers' traces are kept if the caller keeps them.
    pub sample_ratio: f64,
}

/// A provider whose finished spans are exported. Fails on settings that make no sense.
pub(super) fn provider(settings: &OtlpSettings, metrics: &Metrics) -> Result<SdkTracerProvider> {
    let ratio = settings.sample_ratio;
    if !(0.0..=1.0).contains(&ratio) {
        return Err(Error::invalid(format!("the trace sample ratio is {ratio}: it must be 0 to 1")));
    }
    if settings.timeout.is_zero() {
        return Err(Error::invalid("the trace export timeout is 0: it must be longer"));
    }
    let endpoint = traces_url(&settings.endpoint)?;
    let client = CollectorClient::new(settings.timeout);
    let inner = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(client.clone())
        .with_endpoint(&endpoint)
        .with_timeout(settings.timeout)
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|error| Error::invalid(format!("traces cannot be exported to {endpoint}: {error}")))?;
    let exporter = CountingExporter { inner, client, endpoint, metrics: metrics.clone(), gate: Mutex::default() };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUED_SPANS_MAX)
        .with_max_export_batch_size(BATCH_SPANS_MAX)
        .with_scheduled_delay(EXPORT_DELAY)
        .build();
    let version = KeyValue::new("service.version", metrics.server().version());
    let resource = Resource::builder().with_service_name("insula").with_attribute(version).build();
    Ok(SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio))))
        .with_resource(resource)
        .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
        .build())
}

/// The layer that turns spans of the target [`WAY`] into `provider`'s.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + Send + Sync + 'static
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("insula"))
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(Targets::new().with_target(WAY, LevelFilter::TRACE))
}

/// The address that spans are posted to.
fn traces_url(endpoint: &str) -> Result<String> {
    let shown: String = endpoint.chars().take(200).collect();
    if endpoint.starts_with("https://") {
        let message =
            format!("traces cannot be exported to {shown:?}: https is not available in this version; use http");
        return Err(Error::new(Code::Unsupported, message));
    }
    let wanted = || Error::invalid(format!("{shown:?} is not a collector's address: write http://HOST:PORT"));
    let url: ureq::http::Uri = endpoint.parse().map_err(|_| wanted())?;
    if url.scheme_str() != Some("http") || url.host().is_none_or(str::is_empty) {
        return Err(wanted());
    }
    let own_path = !matches!(url.path(), "" | "/");
    Ok(if own_path { endpoint.to_owned() } else { format!("{}/v1/traces", endpoint.trim_end_matches('/')) })
}

/// Exports through `inner`, counts what got out and what did not, and warns of that once a minute.
#[derive(Debug)]
struct CountingExporter {
    inner: opentelemetry_otlp::SpanExporter,
    client: CollectorClient,
    endpoint: String,
    metrics: Metrics,
    gate: Mutex<WarningGate>,
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        let server = self.metrics.server();
        match &result {
            Ok(()) => server.spans_exported.add(spans as u64),
            Err(error) => {
                server.spans_lost.add(spans as u64);
                let reason = self.client.take_failure().unwrap_or_else(|| error.to_string());
                self.warn(spans, &reason);
            }
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl CountingExporter {
    fn warn(&self, spans: usize, reason: &str) {
        if let Some(failures_before) = self.gate.lock().pass(self.metrics.clock().now()) {
            let endpoint = &self.endpoint;
            warn!(%endpoint, spans, reason, failures_before, "spans could not be exported and are lost; serving goes on");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_to_the_standard_path_unless_another_is_given() {
        for (endpoint, url) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
            ("http://collector/custom/path", "http://collector/custom/path"),
        ] {
            assert_eq!(traces_url(endpoint).unwrap(), url);
        }
    }

    #[test]
    fn what_is_no_address_of_a_collector_is_refused() {
        for endpoint in ["", "localhost:4318", "http://", "ftp://x", "http://a b", "/v1/traces", "grpc://x:4317"] {
            assert_eq!(traces_url(endpoint).unwrap_err().code(), Code::InvalidArgument, "{endpoint:?}");
        }
        let error = traces_url("https://collector:4318").unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
        assert!(error.message().contains("https is not available in this version; use http"), "{error}");
    }
}
