//! The thread that writes the access log. It takes what has gathered, makes lines of it and writes them in one call, then
//! lets more gather; with nothing to write it rests. A target that fails costs the lines, never the server.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

use tracing::warn;

use super::queue::RecordQueue;
use crate::tracing_setup::LogFormat;
use crate::warning_gate::WarningGate;

/// How long lines gather before the next write.
const GATHER: Duration = Duration::from_millis(10);

/// The most lines in one write.
const LINES_MAX: usize = 1024;

/// Starts the writer.
pub(super) fn start(queue: Arc<RecordQueue>, target: Box<dyn Write + Send>, format: LogFormat) -> io::Result<Thread> {
    let mut writer = Writer { queue, target, format, lines: String::new(), gate: WarningGate::default() };
    let handle = thread::Builder::new().name("insula-access".to_owned()).spawn(move || writer.run())?;
    Ok(handle.thread().clone())
}

struct Writer {
    queue: Arc<RecordQueue>,
    target: Box<dyn Write + Send>,
    format: LogFormat,
    lines: String,
    gate: WarningGate,
}

impl Writer {
    fn run(&mut self) {
        loop {
            // Asked before the queue is emptied, so that nothing pushed before the close is left.
            let closed = self.queue.is_closed();
            let written = self.write_some();
            if written == LINES_MAX {
                continue;
            }
            if closed {
                break;
            }
            if written > 0 {
                thread::park_timeout(GATHER);
            } else {
                self.queue.rest();
            }
        }
        self.queue.end();
    }

    /// Writes up to [`LINES_MAX`] lines; how many.
    fn write_some(&mut self) -> usize {
        self.lines.clear();
        let mut count = 0;
        while count < LINES_MAX
            && let Some(record) = self.queue.pop()
        {
            record.write_line(self.format, &mut self.lines);
            count += 1;
        }
        if count > 0 {
            let result = self.target.write_all(self.lines.as_bytes()).and_then(|()| self.target.flush());
            self.account(count as u64, result);
        }
        count
    }

    fn account(&mut self, lines: u64, result: io::Result<()>) {
        let metrics = self.queue.metrics();
        match result {
            Ok(()) => metrics.server().access_log_written.add(lines),
            Err(error) => {
                metrics.server().access_log_dropped.add(lines);
                if let Some(failures_before) = self.gate.pass(metrics.clock().now()) {
                    warn!(%error, lines, failures_before, "the access log cannot be written; lines are lost");
                }
            }
        }
    }
}
