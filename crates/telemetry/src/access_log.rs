//! The access log: one line a request, written by a thread of its own. A request's thread only pushes a record to a bounded
//! lock-free queue; when that is full, because the disk or the reader of a pipe is slow, lines are dropped and counted, and
//! no request waits. Server makes the records.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use insula_core::{Code, Error, Result};

use crate::metrics::Metrics;
use crate::tracing_setup::LogFormat;

mod queue;
mod record;
mod writer;

use queue::RecordQueue;
pub use record::AccessRecord;

/// Records that may wait for the writer: a quarter of a second at 60,000 requests/s.
const CAPACITY: usize = 16_384;

/// Where the lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// The process's standard error.
    Stderr,
    /// The end of this file, made with mode 0640 if it is not there.
    File(PathBuf),
}

/// How the access log is written. It is off unless a server starts one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// Where the lines go.
    pub target: AccessLogTarget,
    /// How they are written.
    pub format: LogFormat,
}

/// A running access log. Clones share it.
#[derive(Debug, Clone)]
pub struct AccessLog(Arc<RecordQueue>);

impl AccessLog {
    /// Opens the target and starts the writer. Lines written and dropped are counted in `metrics`.
    pub fn start(settings: &AccessLogSettings, metrics: &Metrics) -> Result<AccessLog> {
        let target: Box<dyn Write + Send> = match &settings.target {
            AccessLogTarget::Stderr => Box::new(io::stderr()),
            AccessLogTarget::File(path) => Box::new(open(path).map_err(|error| {
                Error::invalid(format!("the access log {} cannot be opened: {error}", path.display()))
            })?),
        };
        AccessLog::start_with(target, settings.format, CAPACITY, metrics)
    }

    fn start_with(
        target: Box<dyn Write + Send>,
        format: LogFormat,
        capacity: usize,
        metrics: &Metrics,
    ) -> Result<AccessLog> {
        let queue = Arc::new(RecordQueue::new(capacity, metrics.clone()));
        let thread = writer::start(queue.clone(), target, format)
            .map_err(|error| Error::internal("the access log's thread could not be started", error.to_string()))?;
        queue.set_writer(thread);
        Ok(AccessLog(queue))
    }

    /// Hands a record to the writer. Never waits: if there is no room, or the log is shut down, the line is dropped and
    /// counted.
    pub fn record(&self, record: AccessRecord) {
        self.0.push(record);
    }

    /// Takes no more records, and waits up to `timeout` for those it has to be written. Fails if they were not.
    pub fn shutdown(&self, timeout: Duration) -> Result<()> {
        if self.0.close(timeout) {
            return Ok(());
        }
        let message =
            format!("{} lines of the access log were not written within {} ms", self.0.len(), timeout.as_millis());
        Err(Error::new(Code::DeadlineExceeded, message))
    }
}

fn open(path: &PathBuf) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options.open(path)
}

#[cfg(test)]
mod tests;
