//! The lingering close: a socket whose caller is still sending gets the end of our side at once and is then read empty
//! for a bounded time and size, so that the answer is not lost to a reset. It keeps nothing of what it reads. Streams
//! hand sockets over when they are dropped; a worker's task sees them through.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::registry::Registered;

/// How long to wait for the next byte.
const IDLE: Duration = Duration::from_secs(2);
/// How long to read in all.
const TOTAL: Duration = Duration::from_secs(10);
/// How much to read in all: more than the largest body that a caller may have sent before it looks at the answer.
const BYTES: usize = 256 << 20;
/// How many sockets may wait for a worker to see to them.
const WAITING: usize = 1024;
/// How much is read at once, on the stack.
const PIECE: usize = 16 << 10;

/// A socket that is being closed, with its place in the registry.
#[derive(Debug)]
pub(crate) struct Lingering {
    pub(crate) socket: TcpStream,
    pub(crate) _registered: Registered,
}

/// Where streams of one worker leave sockets that must linger.
#[derive(Debug, Clone)]
pub(crate) struct Farewell(mpsc::Sender<Lingering>);

impl Farewell {
    /// The two ends of a worker's queue.
    pub(crate) fn channel() -> (Farewell, mpsc::Receiver<Lingering>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Farewell(sender), receiver)
    }

    /// Hands `lingering` on. When too many wait it is closed at once, at the risk of a reset.
    pub(crate) fn bid(&self, lingering: Lingering) {
        let _ = self.0.try_send(lingering);
    }
}

impl Lingering {
    /// Ends our side and reads the other until it ends, or time or size is up.
    pub(crate) async fn see_through(mut self) {
        let deadline = Instant::now() + TOTAL;
        let mut left = BYTES;
        if self.socket.shutdown().await.is_err() {
            return;
        }
        while left > 0 && Instant::now() < deadline {
            match timeout(IDLE, self.socket.readable()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
            match discard_piece(&self.socket) {
                Ok(0) => return,
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
            tokio::task::yield_now().await;
        }
    }
}

fn discard_piece(socket: &TcpStream) -> io::Result<usize> {
    let mut piece = [0u8; PIECE];
    socket.try_read(&mut piece)
}
