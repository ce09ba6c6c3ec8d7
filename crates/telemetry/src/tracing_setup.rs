//! Sets up log lines and spans for the process: lines to stderr, as text or JSON, and, where a collector is configured,
//! spans of the way of a request to it. Without a collector those spans are off at their call sites and cost a load and a
//! branch. Called once at start; the guard it returns flushes at the end.

use std::io::IsTerminal;
use std::time::Duration;

use insula_core::{Code, Error, Result};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::metrics::Metrics;

mod collector_client;
mod filter;
mod otlp;

pub use otlp::OtlpSettings;

/// The target of the spans that show the way of a request: `info_span!(target: WAY, "...")`. Spans of other targets are not
/// exported.
pub const WAY: &str = "insula::way";

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged and traced.
#[derive(Debug, Clone)]
pub struct TracingSettings {
    /// What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), and `target=level` for parts of the
    /// program, with commas between: `info,insula_runtime=debug`.
    pub filter: String,
    /// How lines are written.
    pub format: LogFormat,
    /// Where spans go; `None`: nowhere.
    pub otlp: Option<OtlpSettings>,
}

impl Default for TracingSettings {
    fn default() -> TracingSettings {
        TracingSettings { filter: "info".to_owned(), format: LogFormat::Text, otlp: None }
    }
}

/// Keeps the trace export running; give it back its time to flush with [`TelemetryGuard::shutdown`].
#[derive(Debug)]
#[must_use = "spans that are not exported yet are lost without `shutdown`"]
pub struct TelemetryGuard {
    provider: Option<SdkTracerProvider>,
}

/// Sets up logging and tracing for the whole process. Fails on a setting that makes no sense, or if the process has a
/// subscriber already. Spans exported and lost are counted in `metrics`.
pub fn init(settings: &TracingSettings, metrics: &Metrics) -> Result<TelemetryGuard> {
    // Lines never show spans, so a filter for lines must not switch them on.
    let lines = filter::parse(&settings.filter)?.with_target(WAY, LevelFilter::OFF);
    let provider = settings.otlp.as_ref().map(|otlp| otlp::provider(otlp, metrics)).transpose()?;
    let set = match &provider {
        Some(provider) => {
            let traced = Registry::default().with(otlp::layer(provider));
            install(traced.with(line_layer(settings.format, lines)))
        }
        None => install(Registry::default().with(line_layer(settings.format, lines))),
    };
    set.map(|()| TelemetryGuard { provider })
}

fn install(subscriber: impl Subscriber + Send + Sync) -> Result<()> {
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|_| Error::new(Code::Conflict, "logging is set up already: it can be set up once in a process"))
}

fn line_layer<S>(format: LogFormat, filter: Targets) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            layer.with_ansi(colours).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            let layer = layer.json().flatten_event(true).with_current_span(false).with_span_list(false);
            layer.with_filter(filter).boxed()
        }
    }
}

impl TelemetryGuard {
    /// Exports what is finished and stops exporting, within `timeout`. Fails if not all of it got out.
    pub fn shutdown(self, timeout: Duration) -> Result<()> {
        let Some(provider) = self.provider else { return Ok(()) };
        provider.shutdown_with_timeout(timeout).map_err(|error| {
            let message = format!("not all spans were exported within {} ms", timeout.as_millis());
            Error::new(Code::DeadlineExceeded, message).with_detail(error.to_string())
        })
    }
}
