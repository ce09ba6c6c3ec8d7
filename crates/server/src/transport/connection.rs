//! What is known of one TCP connection while it lives: whether a request is being read, answered or awaited, and whether
//! it should end. It never touches the socket: the stream asks it before each read, handlers tell it how far they are,
//! and the stop asks idle ones to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;

/// How many bytes a connection may send ahead of what somebody asked for while its request is being worked on. More stay
/// in the kernel, so that nobody can fill our memory by sending early.
pub(crate) const AHEAD_BYTES: usize = 16 << 10;

/// Bytes taken from the socket in one turn while a head is awaited. With 500 connections that send and send this, and
/// not actix-http's own limit of 128 KiB, is what each can make us hold.
const HEAD_TURN_BYTES: usize = 8 << 10;

/// Bytes taken from the socket in one turn while an admitted body is read.
const BODY_TURN_BYTES: usize = 64 << 10;

/// Between requests: the next bytes are a request's head.
const AWAITING: u8 = 0;
/// A request is being worked on and nobody asked for its body, or all of it is here.
const WORKING: u8 = 1;
/// A request was admitted and its body is being read.
const READING: u8 = 2;

/// What a read of the socket may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Read up to so many bytes before giving others a turn.
    Turn(usize),
    /// Leave everything in the kernel until the state changes.
    Hold,
    /// Read what is there; if nothing is, act as if the other side had closed.
    EndIfQuiet,
    /// Act as if the other side had closed.
    End,
}

/// The state of one connection, shared by its stream, its handlers and the stop.
#[derive(Debug)]
pub(crate) struct Connection {
    peer: SocketAddr,
    over_limit: Option<usize>,
    phase: AtomicU8,
    ahead: AtomicUsize,
    answered: AtomicU64,
    unread: AtomicBool,
    ending: AtomicBool,
    cut: AtomicBool,
    reader: AtomicWaker,
}

impl Connection {
    /// A connection from `peer`; `over_limit` is how many are served if this is one more.
    pub(crate) fn new(peer: SocketAddr, over_limit: Option<usize>) -> Connection {
        Connection {
            peer,
            over_limit,
            phase: AtomicU8::new(AWAITING),
            ahead: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        }
    }

    /// The address of the other side.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// If it is one more than are served, how many are: its requests are refused.
    pub(crate) fn over_limit(&self) -> Option<usize> {
        self.over_limit
    }

    /// How many requests have been answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Whether bytes have come in, or are announced, that no finished request has taken.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Whether a request's head has begun to arrive and is not complete.
    pub(crate) fn is_amid_head(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == AWAITING && self.has_unread()
    }

    /// What a read may do now.
    pub(crate) fn read_mode(&self) -> ReadMode {
        let phase = self.phase.load(Ordering::Relaxed);
        match phase {
            AWAITING if self.cut.load(Ordering::Relaxed) => ReadMode::End,
            AWAITING if self.ending.load(Ordering::Relaxed) => ReadMode::EndIfQuiet,
            AWAITING => ReadMode::Turn(HEAD_TURN_BYTES),
            READING => ReadMode::Turn(BODY_TURN_BYTES),
            _ if self.ahead.load(Ordering::Relaxed) >= AHEAD_BYTES => ReadMode::Hold,
            _ => ReadMode::Turn(AHEAD_BYTES),
        }
    }

    /// Notes that `bytes` came in.
    pub(crate) fn note_read(&self, bytes: usize) {
        match self.phase.load(Ordering::Relaxed) {
            READING => {}
            WORKING => {
                self.ahead.fetch_add(bytes, Ordering::Relaxed);
            }
            _ => self.unread.store(true, Ordering::Relaxed),
        }
    }

    /// Keeps the waker of a read that found nothing, to be woken when [`Connection::read_mode`] changes.
    pub(crate) fn register_reader(&self, waker: &Waker) {
        self.reader.register(waker);
    }

    /// Ends the connection once no request is being worked on. Of the connections that await a request only those end
    /// that are quiet, unless `also_fresh` says to end new ones and those amid a head too. Says whether it will end.
    pub(crate) fn end(&self, also_fresh: bool) -> bool {
        let awaiting = self.phase.load(Ordering::Relaxed) == AWAITING;
        if awaiting && !also_fresh && (self.answered() == 0 || self.has_unread()) {
            return false;
        }
        if !self.ending.swap(true, Ordering::Relaxed) {
            self.reader.wake();
        }
        true
    }

    fn enter(&self, phase: u8) {
        self.phase.store(phase, Ordering::Relaxed);
        self.reader.wake();
    }
}

/// A request in work on a connection, from its complete head to the last byte of its answer. Made when a handler is
/// called and dropped with the answer's body.
#[derive(Debug)]
pub(crate) struct RequestInWork {
    connection: Arc<Connection>,
    unread: AtomicBool,
}

impl RequestInWork {
    /// Begins a request; `has_body` says whether its head announces a body.
    pub(crate) fn begin(connection: &Arc<Connection>, has_body: bool) -> RequestInWork {
        connection.ahead.store(0, Ordering::Relaxed);
        connection.phase.store(WORKING, Ordering::Relaxed);
        RequestInWork { connection: connection.clone(), unread: AtomicBool::new(has_body) }
    }

    /// The body is wanted: from now on it is read as fast as it is taken.
    pub(crate) fn read_body(&self) {
        self.connection.enter(READING);
    }

    /// The whole body has been taken.
    pub(crate) fn body_taken(&self) {
        self.unread.store(false, Ordering::Relaxed);
        self.connection.ahead.store(0, Ordering::Relaxed);
        self.connection.phase.store(WORKING, Ordering::Relaxed);
    }

    /// Whether the head announced a body that has not been taken to its end.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }
}

impl Drop for RequestInWork {
    fn drop(&mut self) {
        let connection = &self.connection;
        let body_left = self.unread.load(Ordering::Relaxed);
        let sent_ahead = connection.ahead.load(Ordering::Relaxed) > 0;
        connection.unread.store(body_left || sent_ahead, Ordering::Relaxed);
        if body_left {
            connection.cut.store(true, Ordering::Relaxed);
        }
        connection.answered.fetch_add(1, Ordering::Relaxed);
        connection.enter(AWAITING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Arc<Connection> {
        Arc::new(Connection::new(SocketAddr::from(([127, 0, 0, 1], 1)), None))
    }

    #[test]
    fn a_body_nobody_asked_for_stays_in_the_kernel() {
        let connection = connection();
        let _request = RequestInWork::begin(&connection, true);
        connection.note_read(AHEAD_BYTES);
        assert_eq!(connection.read_mode(), ReadMode::Hold);
    }

    #[test]
    fn an_admitted_body_is_read_in_larger_turns() {
        let connection = connection();
        assert_eq!(connection.read_mode(), ReadMode::Turn(HEAD_TURN_BYTES));
        let request = RequestInWork::begin(&connection, true);
        request.read_body();
        connection.note_read(1 << 20);
        assert_eq!(connection.read_mode(), ReadMode::Turn(BODY_TURN_BYTES));
    }

    #[test]
    fn an_answer_before_the_end_of_the_body_ends_the_connection() {
        let connection = connection();
        drop(RequestInWork::begin(&connection, true));
        assert_eq!(connection.read_mode(), ReadMode::End);
        assert!(connection.has_unread());
    }

    #[test]
    fn a_connection_whose_body_was_taken_serves_on() {
        let connection = connection();
        let request = RequestInWork::begin(&connection, true);
        request.read_body();
        request.body_taken();
        drop(request);
        assert_eq!(connection.read_mode(), ReadMode::Turn(HEAD_TURN_BYTES));
        assert!(!connection.has_unread());
        assert_eq!(connection.answered(), 1);
    }

    #[test]
    fn the_stop_ends_quiet_connections_first_and_lets_requests_finish() {
        let (quiet, fresh, busy) = (connection(), connection(), connection());
        drop(RequestInWork::begin(&quiet, false));
        let request = RequestInWork::begin(&busy, false);
        assert!(quiet.end(false));
        assert!(!fresh.end(false));
        assert!(busy.end(false));
        assert_eq!(quiet.read_mode(), ReadMode::EndIfQuiet);
        assert_eq!(busy.read_mode(), ReadMode::Turn(AHEAD_BYTES));
        drop(request);
        assert_eq!(busy.read_mode(), ReadMode::EndIfQuiet);
        assert!(fresh.end(true));
        assert_eq!(fresh.read_mode(), ReadMode::EndIfQuiet);
    }
}
