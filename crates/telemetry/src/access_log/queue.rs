//! The bounded queue between requests and the access log's writer, and how the writer is woken: only when it rests, so that
//! under load a push is an atomic exchange and no system call. Every record that is pushed ends up written or counted as
//! dropped.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use parking_lot::{Condvar, Mutex};

use super::record::AccessRecord;
use crate::metrics::Metrics;

#[derive(Debug)]
pub(super) struct RecordQueue {
    records: ArrayQueue<AccessRecord>,
    metrics: Metrics,
    writer: OnceLock<Thread>,
    /// The writer is about to park, or parked, until it is woken.
    resting: AtomicBool,
    /// No record is taken any more.
    closed: AtomicBool,
    /// The writer has ended; what is pushed now is read by nobody.
    ended: AtomicBool,
    end: Mutex<bool>,
    end_came: Condvar,
}

impl RecordQueue {
    pub(super) fn new(capacity: usize, metrics: Metrics) -> RecordQueue {
        RecordQueue {
            records: ArrayQueue::new(capacity),
            metrics,
            writer: OnceLock::new(),
            resting: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            end: Mutex::new(false),
            end_came: Condvar::new(),
        }
    }

    pub(super) fn set_writer(&self, thread: Thread) {
        // There is one writer, so the place is empty; should it not be, the first one stays.
        let _ = self.writer.set(thread);
        self.wake();
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn push(&self, record: AccessRecord) {
        if self.closed.load(Ordering::Relaxed) || self.records.push(record).is_err() {
            self.metrics.server().access_log_dropped.add(1);
            return;
        }
        // Pairs with the fences in `rest` and `end`: either the writer sees the record or this sees what the writer said.
        fence(Ordering::SeqCst);
        if self.ended.load(Ordering::Relaxed) {
            self.drop_rest();
        } else if self.resting.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    pub(super) fn pop(&self) -> Option<AccessRecord> {
        self.records.pop()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The writer waits until there is something to do.
    pub(super) fn rest(&self) {
        self.resting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.records.is_empty() && !self.is_closed() {
            std::thread::park();
        }
        self.resting.store(false, Ordering::Relaxed);
    }

    /// The writer says that it has ended.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.drop_rest();
        *self.end.lock() = true;
        self.end_came.notify_all();
    }

    /// Refuses further records and waits for the writer's end; whether it came in time.
    pub(super) fn close(&self, timeout: Duration) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        self.wake();
        let mut ended = self.end.lock();
        self.end_came.wait_while_for(&mut ended, |ended| !*ended, timeout);
        *ended
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    fn drop_rest(&self) {
        while self.records.pop().is_some() {
            self.metrics.server().access_log_dropped.add(1);
        }
    }
}
