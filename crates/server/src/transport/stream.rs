//! The socket as actix-http sees it. It gives reads in small turns, holds back what nobody asked for, and ends a
//! connection whose head trickles or whose caller does not take the answer: timers here are polled by the connection's
//! own task also while its body stream waits. It parses nothing. Workers make one for each accepted socket.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::{Connection, ReadMode};
use super::linger::{Farewell, Lingering};
use super::registry::Registered;

/// How long nothing must have come for a connection to count as quiet.
const QUIET: Duration = Duration::from_millis(5);

/// How long a connection may keep others waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits {
    /// From the first byte of a request's head to its last.
    pub head: Duration,
    /// The longest time without a byte of the answer taken.
    pub response_stall: Duration,
    /// The longest time from the first byte that was not taken at once to the end of the answer.
    pub response_total: Duration,
}

/// A socket with its connection's state and timers.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Option<TcpStream>,
    registered: Option<Registered>,
    connection: Arc<Connection>,
    limits: StreamLimits,
    farewell: Farewell,
    turn: usize,
    head: Timer,
    stall: Timer,
    quiet: Timer,
    slow_answer: Option<SlowAnswer>,
    closed_by_caller: bool,
    aborted: bool,
}

/// The answer, by its number on the connection, that was not taken at once, and when it must be taken.
#[derive(Debug, Clone, Copy)]
struct SlowAnswer {
    number: u64,
    deadline: Instant,
}

/// A timer that is made when it is first needed.
#[derive(Debug, Default)]
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    armed: bool,
}

impl Timer {
    /// Sets the timer unless it is running.
    fn arm(&mut self, deadline: impl FnOnce() -> Instant) {
        if self.armed {
            return;
        }
        self.armed = true;
        let deadline = deadline();
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(deadline),
            None => self.sleep = Some(Box::pin(sleep_until(deadline))),
        }
    }

    fn disarm(&mut self) {
        self.armed = false;
    }

    fn has_elapsed(&mut self, cx: &mut Context<'_>) -> bool {
        self.armed && self.sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
    }
}

impl Stream {
    /// Wraps an accepted socket.
    pub(crate) fn new(socket: TcpStream, registered: Registered, limits: StreamLimits, farewell: Farewell) -> Stream {
        Stream {
            socket: Some(socket),
            connection: registered.connection().clone(),
            registered: Some(registered),
            limits,
            farewell,
            turn: 0,
            head: Timer::default(),
            stall: Timer::default(),
            quiet: Timer::default(),
            slow_answer: None,
            closed_by_caller: false,
            aborted: false,
        }
    }

    /// The connection's state.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Whether the head that has begun to arrive takes too long. The connection's first head is timed by actix-http,
    /// which answers 408; it does not time later ones.
    fn head_is_late(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.connection.is_amid_head() || self.connection.answered() == 0 {
            self.head.disarm();
            return false;
        }
        let allowed = self.limits.head;
        self.head.arm(|| Instant::now() + allowed);
        self.head.has_elapsed(cx)
    }

    fn read_socket(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Ok(())) };
        let before = buf.filled().len();
        let polled = Pin::new(socket).poll_read(cx, buf);
        match &polled {
            Poll::Ready(Ok(())) => {
                let count = buf.filled().len() - before;
                self.closed_by_caller |= count == 0;
                self.turn += count;
                self.connection.note_read(count);
            }
            Poll::Ready(Err(_)) => self.closed_by_caller = true,
            Poll::Pending => self.turn = 0,
        }
        polled
    }

    /// Whether nothing has come for a moment. A single look is not enough: what the kernel has is known to us only after
    /// the event loop has asked it, and what was just read may be a whole request that nobody has looked at yet.
    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        self.quiet.arm(|| Instant::now() + QUIET);
        self.quiet.has_elapsed(cx)
    }

    /// Called when the socket takes no more: pending, or an error once the caller has had its time.
    fn stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let number = self.connection.answered();
        let (stall, total) = (self.limits.response_stall, self.limits.response_total);
        let slow = match self.slow_answer {
            Some(slow) if slow.number == number => slow,
            _ => SlowAnswer { number, deadline: Instant::now() + total },
        };
        self.slow_answer = Some(slow);
        self.stall.arm(|| slow.deadline.min(Instant::now() + stall));
        if !self.stall.has_elapsed(cx) {
            return Poll::Pending;
        }
        self.aborted = true;
        tracing::debug!(peer = %self.connection.peer(), "the caller does not take its answer, the connection is closed");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.head_is_late(cx) {
            return Poll::Ready(Ok(()));
        }
        let mode = self.connection.read_mode();
        if mode == ReadMode::End {
            return Poll::Ready(Ok(()));
        }
        if let ReadMode::Turn(bytes) = mode
            && self.turn >= bytes
        {
            self.turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if mode != ReadMode::Hold {
            let polled = self.read_socket(cx, buf);
            if polled.is_ready() {
                self.quiet.disarm();
                return polled;
            }
        }
        self.connection.register_reader(cx.waker());
        // asked again: what changed while the waker was being left would wake nobody
        match self.connection.read_mode() {
            ReadMode::End => Poll::Ready(Ok(())),
            ReadMode::EndIfQuiet if self.is_quiet(cx) => Poll::Ready(Ok(())),
            ReadMode::EndIfQuiet | ReadMode::Turn(_) | ReadMode::Hold => Poll::Pending,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        match Pin::new(socket).poll_write(cx, data) {
            Poll::Ready(written) => {
                self.stall.disarm();
                Poll::Ready(written)
            }
            Poll::Pending => self.stalled(cx),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Some(socket) => Pin::new(socket).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for Stream {
    /// A close with unread bytes makes the kernel reset the connection, which can overtake the answer: such a socket is
    /// handed on to be read empty first. One that we gave up is reset, so that the kernel does not keep its unsent bytes.
    fn drop(&mut self) {
        let (Some(socket), Some(registered)) = (self.socket.take(), self.registered.take()) else { return };
        if self.aborted {
            let _ = socket.set_zero_linger();
        } else if self.connection.has_unread() && !self.closed_by_caller {
            self.farewell.bid(Lingering { socket, _registered: registered });
        }
    }
}
