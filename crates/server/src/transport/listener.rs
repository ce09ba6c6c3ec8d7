//! A listening socket: it accepts, registers and hands on, and when told to close first takes in every connection that
//! the kernel has completed, so that none is reset. It reads nothing. The start runs one for callers and one for admin.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use insula_core::{Code, Error, Result};
use tokio::sync::watch;

use super::registry::Registry;
use super::workers::{Accepted, Dispatch};

/// How long to wait when the system has no descriptor left for another socket.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A bound address.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds `address`; port 0 takes a free one. The error names `setting` and what to do.
    pub(crate) fn bind(address: SocketAddr, setting: &str) -> Result<Listener> {
        let bound = TcpListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            Ok(Listener { socket, address })
        });
        bound.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "another process listens there: stop it or choose another port",
                io::ErrorKind::PermissionDenied => "ports below 1024 need a permission: choose another port",
                io::ErrorKind::AddrNotAvailable => "this machine has no such address: choose one of its own",
                _ => "choose another address",
            };
            Error::new(Code::Conflict, format!("{setting} {address} cannot be listened on ({error}); {advice}"))
        })
    }

    /// The address with its real port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts until `closing` becomes true, then takes in what the kernel has completed and closes.
    pub(crate) async fn run(self, registry: Arc<Registry>, dispatch: Dispatch, mut closing: watch::Receiver<bool>) {
        let socket = match tokio::net::TcpListener::from_std(self.socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!(%error, address = %self.address, "the listening socket cannot be watched");
                return;
            }
        };
        loop {
            let accepted = tokio::select! {
                accepted = next(&socket, &registry) => accepted,
                _ = closing.wait_for(|closing| *closing) => break,
            };
            match accepted {
                Ok((accepted, peer)) => hand_on(accepted, peer, &registry, &dispatch).await,
                Err(error) => back_off(&error).await,
            }
        }
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((accepted, peer)) = socket.accept() {
            hand_on(accepted, peer, &registry, &dispatch).await;
        }
    }
}

async fn next(socket: &tokio::net::TcpListener, registry: &Registry) -> io::Result<(TcpStream, SocketAddr)> {
    registry.room().await;
    let (accepted, peer) = socket.accept().await?;
    Ok((accepted.into_std()?, peer))
}

async fn hand_on(socket: TcpStream, peer: SocketAddr, registry: &Arc<Registry>, dispatch: &Dispatch) {
    if let Err(error) = socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true)) {
        tracing::debug!(%error, %peer, "an accepted socket was gone at once");
        return;
    }
    dispatch.send(Accepted { socket, registered: registry.register(peer) }).await;
}

async fn back_off(error: &io::Error) {
    let harmless = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    if !harmless.contains(&error.kind()) {
        tracing::warn!(%error, "no connection can be accepted now");
        tokio::time::sleep(BACK_OFF).await;
    }
}
