//! What the access log says of one request, and its two forms: `key=value` text and JSON. What a caller chose (the request
//! id) is escaped, so that it cannot begin a line of its own.

use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use insula_core::{ModelName, Outcome, RequestId, TenantId};
use jiff::Timestamp;
use serde::Serialize;

use crate::tracing_setup::LogFormat;

/// One request that ended.
#[derive(Debug, Clone)]
pub struct AccessRecord {
    /// When its headers came.
    pub time: SystemTime,
    /// Its id.
    pub request_id: RequestId,
    /// Whose it was, if that is known.
    pub tenant: Option<TenantId>,
    /// The model it asked for, if it named one.
    pub model: Option<ModelName>,
    /// The HTTP status of its answer; `None` if there was no answer.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes of its body as received.
    pub bytes_in: u64,
    /// Bytes of its answer's body.
    pub bytes_out: u64,
    /// Time in a fair queue.
    pub queue: Duration,
    /// Device time that it was charged.
    pub device: Duration,
    /// From its headers to its end.
    pub total: Duration,
    /// Where it came from.
    pub remote: Option<SocketAddr>,
}

/// The fields as they are shown, in their order.
#[derive(Serialize)]
struct Line {
    time: String,
    request_id: String,
    tenant: Option<String>,
    model: Option<String>,
    status: Option<u16>,
    outcome: &'static str,
    bytes_in: u64,
    bytes_out: u64,
    queue_ms: f64,
    device_ms: f64,
    total_ms: f64,
    remote: Option<String>,
}

impl AccessRecord {
    /// Appends the record's line to `lines`.
    pub(super) fn write_line(&self, format: LogFormat, lines: &mut String) {
        let line = self.line();
        let written = match format {
            LogFormat::Text => line.write_text(lines),
            LogFormat::Json => serde_json::to_string(&line).map_err(|_| fmt::Error).map(|json| lines.push_str(&json)),
        };
        // Writing to a `String` and plain fields to JSON cannot fail.
        debug_assert!(written.is_ok());
        lines.push('\n');
    }

    fn line(&self) -> Line {
        let time = Timestamp::try_from(self.time).unwrap_or_default();
        Line {
            time: format!("{time:.3}"),
            request_id: self.request_id.to_string(),
            tenant: self.tenant.as_ref().map(ToString::to_string),
            model: self.model.as_ref().map(ToString::to_string),
            status: self.status,
            outcome: self.outcome.as_str(),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            queue_ms: milliseconds(self.queue),
            device_ms: milliseconds(self.device),
            total_ms: milliseconds(self.total),
            remote: self.remote.map(|address| address.to_string()),
        }
    }
}

impl Line {
    fn write_text(&self, out: &mut String) -> fmt::Result {
        write!(out, "time={} request_id=", self.time)?;
        write_word(&self.request_id, out)?;
        write!(out, " tenant={} model={}", or_dash(self.tenant.as_deref()), or_dash(self.model.as_deref()))?;
        match self.status {
            Some(status) => write!(out, " status={status}")?,
            None => out.write_str(" status=-")?,
        }
        write!(out, " outcome={} bytes_in={} bytes_out={}", self.outcome, self.bytes_in, self.bytes_out)?;
        write!(out, " queue_ms={:.3} device_ms={:.3}", self.queue_ms, self.device_ms)?;
        write!(out, " total_ms={:.3} remote={}", self.total_ms, or_dash(self.remote.as_deref()))
    }
}

/// `text` as it is if it can be told from its surroundings, else in quotes with escapes.
fn write_word(text: &str, out: &mut String) -> fmt::Result {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=' | b'\\');
    if !text.is_empty() && text.bytes().all(plain) { out.write_str(text) } else { write!(out, "{text:?}") }
}

fn or_dash(text: Option<&str>) -> &str {
    text.unwrap_or("-")
}

/// Milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
