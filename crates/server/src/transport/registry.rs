//! All connections that are open: how many, whether there is room for one more, and the means to end them at stop. It
//! knows no protocol. The listener registers each socket; the guard takes it out again when the socket is closed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::connection::Connection;

/// The open connections of one listener.
#[derive(Debug)]
pub(crate) struct Registry {
    limit: usize,
    next: AtomicU64,
    open: AtomicUsize,
    closed_one: Notify,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
}

impl Registry {
    /// A registry that serves at most `limit` connections.
    pub(crate) fn new(limit: usize) -> Arc<Registry> {
        Arc::new(Registry {
            limit: limit.max(1),
            next: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            closed_one: Notify::new(),
            connections: Mutex::new(HashMap::new()),
        })
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Registers a socket from `peer`. Beyond the limit the connection is marked as over it.
    pub(crate) fn register(self: &Arc<Self>, peer: SocketAddr) -> Registered {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let before = self.open.fetch_add(1, Ordering::SeqCst);
        let over_limit = (before >= self.limit).then_some(self.limit);
        let connection = Arc::new(Connection::new(peer, over_limit));
        self.lock().insert(number, connection.clone());
        Registered { registry: self.clone(), number, connection }
    }

    /// Waits while more are open than the limit and a reserve for polite refusals: further ones wait in the kernel.
    pub(crate) async fn room(&self) {
        let most = self.limit + self.limit / 8 + 16;
        loop {
            let closed = self.closed_one.notified();
            if self.open() < most {
                return;
            }
            closed.await;
        }
    }

    /// Ends the connections that await a request (see [`Connection::end`]).
    pub(crate) fn end_idle(&self, also_fresh: bool) {
        let connections: Vec<_> = self.lock().values().cloned().collect();
        for connection in &connections {
            connection.end(also_fresh);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection's place in the registry.
#[derive(Debug)]
pub(crate) struct Registered {
    registry: Arc<Registry>,
    number: u64,
    connection: Arc<Connection>,
}

impl Registered {
    /// The connection's state.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.number);
        self.registry.open.fetch_sub(1, Ordering::SeqCst);
        self.registry.closed_one.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_the_limit_is_marked_and_its_place_comes_back() {
        let registry = Registry::new(2);
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let first = registry.register(peer);
        let _second = registry.register(peer);
        assert_eq!(registry.register(peer).connection().over_limit(), Some(2));
        drop(first);
        assert_eq!(registry.register(peer).connection().over_limit(), None);
        assert_eq!(registry.open(), 1);
    }
}
