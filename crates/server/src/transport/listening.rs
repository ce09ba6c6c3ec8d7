//! A listener at work: the thread that accepts, the workers that serve, the registry of what is open. The start makes one
//! for callers and one for admin; the stop closes them step by step.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::watch;

use super::listener::Listener;
use super::registry::Registry;
use super::workers::Workers;

/// A listener at work.
#[derive(Debug)]
pub(crate) struct Listening {
    address: SocketAddr,
    registry: Arc<Registry>,
    closing: watch::Sender<bool>,
    accepting: Option<JoinHandle<()>>,
    workers: Workers,
}

impl Listening {
    /// Begins to accept at `listener` on a thread of its own, named after `name`, and hands sockets to `workers`.
    pub(crate) fn start(name: &str, listener: Listener, connections: usize, workers: Workers) -> io::Result<Listening> {
        let (address, registry) = (listener.address(), Registry::new(connections));
        let (closing, is_closing) = watch::channel(false);
        let (registered, dispatch) = (registry.clone(), workers.dispatch());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let accepting = thread::Builder::new()
            .name(format!("{name}-accept"))
            .spawn(move || runtime.block_on(listener.run(registered, dispatch, is_closing)))?;
        Ok(Listening { address, registry, closing, accepting: Some(accepting), workers })
    }

    /// The address with its real port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.registry.open()
    }

    /// Closes the listening socket once it has taken in what the kernel had completed.
    pub(crate) fn close(&mut self) {
        let _ = self.closing.send(true);
        if let Some(accepting) = self.accepting.take()
            && accepting.join().is_err()
        {
            tracing::error!(address = %self.address, "the thread that accepts connections panicked");
        }
    }

    /// Ends idle connections (see [`super::connection::Connection::end`]).
    pub(crate) fn end_idle(&self, also_fresh: bool) {
        self.registry.end_idle(also_fresh);
    }

    /// Ends whatever is still open and joins the threads.
    pub(crate) fn finish(mut self) {
        self.close();
        self.workers.force();
        self.workers.join();
    }
}
