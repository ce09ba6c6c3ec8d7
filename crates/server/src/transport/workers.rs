//! The threads that serve connections: each has its own event loop and its own instance of the HTTP service, and takes
//! accepted sockets from a bounded queue. They know no route. The start makes one set for callers and one for admin; the
//! stop closes their queues and waits until their connections have ended.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::TcpStream as AcceptedSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use actix_service::Service;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, LocalSet};

use super::linger::{Farewell, Lingering};
use super::registry::Registered;
use super::stream::{Stream, StreamLimits};

/// Accepted sockets that may wait for one worker.
const QUEUE: usize = 256;

/// An accepted socket on its way to a worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: AcceptedSocket,
    pub(crate) registered: Registered,
}

/// The future of a service that is being made on its worker's thread.
pub(crate) type MakeService<S> = Pin<Box<dyn Future<Output = Result<S, String>>>>;

/// A set of worker threads.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    force: watch::Sender<bool>,
}

struct Worker {
    queue: mpsc::Sender<Accepted>,
    load: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

/// What hands accepted sockets to the workers.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    queues: Vec<(mpsc::Sender<Accepted>, Arc<AtomicUsize>)>,
}

impl Workers {
    /// Starts `count` threads named after `name`, each with a service from `make`. Fails if a thread or a service cannot
    /// be made.
    pub(crate) fn start<F, S>(name: &str, count: usize, limits: StreamLimits, make: F) -> io::Result<Workers>
    where
        F: Fn() -> MakeService<S> + Send + Clone + 'static,
        S: Service<Stream> + 'static,
        S::Error: fmt::Debug,
    {
        let (force, forced) = watch::channel(false);
        let mut starting = Vec::new();
        for index in 0..count.max(1) {
            let (queue, accepted) = mpsc::channel(QUEUE);
            let (made, is_made) = oneshot::channel();
            let load = Arc::new(AtomicUsize::new(0));
            let running = Running { accepted, load: load.clone(), limits, forced: forced.clone() };
            let make = make.clone();
            let thread =
                thread::Builder::new().name(format!("{name}-{index}")).spawn(move || running.run(make(), made))?;
            starting.push((Worker { queue, load, thread }, is_made));
        }
        let mut workers = Vec::new();
        for (worker, is_made) in starting {
            match is_made.blocking_recv() {
                Ok(Ok(())) => workers.push(worker),
                Ok(Err(reason)) => return Err(io::Error::other(reason)),
                Err(_) => return Err(io::Error::other(format!("a thread of {name} ended while it started"))),
            }
        }
        Ok(Workers { workers, force })
    }

    /// What hands sockets to these workers.
    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch { queues: self.workers.iter().map(|worker| (worker.queue.clone(), worker.load.clone())).collect() }
    }

    /// Ends all connections now, whatever they do.
    pub(crate) fn force(&self) {
        let _ = self.force.send(true);
    }

    /// Takes no more sockets and waits until all connections have ended. The dispatches must be gone by then.
    pub(crate) fn join(self) {
        let Workers { workers, force } = self;
        let threads: Vec<_> = workers.into_iter().map(|worker| worker.thread).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread that serves connections panicked");
            }
        }
        drop(force);
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("count", &self.workers.len()).finish_non_exhaustive()
    }
}

impl Dispatch {
    /// Hands a socket to the worker that serves the fewest, waiting if its queue is full.
    pub(crate) async fn send(&self, accepted: Accepted) {
        let least = self.queues.iter().min_by_key(|(_, load)| load.load(Ordering::Relaxed));
        if let Some((queue, load)) = least {
            load.fetch_add(1, Ordering::Relaxed);
            if queue.send(accepted).await.is_err() {
                load.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// One worker on its thread.
struct Running {
    accepted: mpsc::Receiver<Accepted>,
    load: Arc<AtomicUsize>,
    limits: StreamLimits,
    forced: watch::Receiver<bool>,
}

impl Running {
    fn run<S>(self, make: MakeService<S>, made: oneshot::Sender<Result<(), String>>)
    where
        S: Service<Stream> + 'static,
        S::Error: fmt::Debug,
    {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = made.send(Err(format!("no event loop could be made: {error}")));
                return;
            }
        };
        let local = LocalSet::new();
        local.block_on(&runtime, async move {
            match make.await {
                Ok(service) => {
                    let _ = made.send(Ok(()));
                    self.serve(service).await;
                }
                Err(reason) => {
                    let _ = made.send(Err(reason));
                }
            }
        });
    }

    async fn serve<S>(self, service: S)
    where
        S: Service<Stream> + 'static,
        S::Error: fmt::Debug,
    {
        let Running { mut accepted, load, limits, mut forced } = self;
        let (farewell, mut lingering) = Farewell::channel();
        let mut tasks = JoinSet::new();
        let mut open = true;
        while open || !tasks.is_empty() {
            tokio::select! {
                next = accepted.recv(), if open => match next {
                    Some(next) => {
                        let served = Served(load.clone());
                        if let Some(stream) = wrap(next, limits, &farewell) {
                            tasks.spawn_local(serve_connection(service.call(stream), served));
                        }
                    }
                    None => open = false,
                },
                Some(socket) = lingering.recv() => {
                    tasks.spawn_local(Lingering::see_through(socket));
                }
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                Ok(_) = forced.wait_for(|forced| *forced) => break,
            }
            while let Ok(socket) = lingering.try_recv() {
                tasks.spawn_local(Lingering::see_through(socket));
            }
        }
    }
}

fn wrap(accepted: Accepted, limits: StreamLimits, farewell: &Farewell) -> Option<Stream> {
    match TcpStream::from_std(accepted.socket) {
        Ok(socket) => Some(Stream::new(socket, accepted.registered, limits, farewell.clone())),
        Err(error) => {
            tracing::warn!(%error, "an accepted socket cannot be watched and is closed");
            None
        }
    }
}

async fn serve_connection<T, E: fmt::Debug>(serving: impl Future<Output = Result<T, E>>, _served: Served) {
    if let Err(error) = serving.await {
        tracing::debug!(?error, "a connection ended early");
    }
}

/// Counts a connection out of its worker's load.
struct Served(Arc<AtomicUsize>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
