//! What the server tells about itself: metrics, log lines, traces and the access log. Nothing here decides anything, and
//! nothing here makes a request wait: hot paths add to atomics or push to bounded queues. Labels come from configured
//! names and fixed lists only, never from callers. Runtime, exec and server report into it; the admin port renders it.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod metrics;
pub mod trace_context;
pub mod tracing_setup;
mod warning_gate;

pub use access_log::{AccessLog, AccessLogSettings, AccessLogTarget, AccessRecord};
pub use metrics::{
    Actor, BatchMetrics, Exposition, Metrics, ModelMetrics, ModelReady, PendingRequest, TenantGauges, TenantLifecycle,
    TenantMetrics, WorkerMetrics,
};
pub use trace_context::RemoteParent;
pub use tracing_setup::{LogFormat, OtlpSettings, TelemetryGuard, TracingSettings, WAY, init};
