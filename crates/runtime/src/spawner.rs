//! The one thread that makes arbiters (which blocks for up to milliseconds) and starts actors on them, again after a
//! panic. Handlers never make an arbiter; they leave an order here. It decides nothing about what an actor does.

use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use actix_rt::{Arbiter, ArbiterHandle, System};
use insula_core::{Error, Result};

/// Orders that may wait; far more than actors that can die at the same moment.
const ORDERS: usize = 4096;

type Order = Box<dyn FnOnce() + Send>;

/// Leaves orders for the spawner thread; cheap to clone.
#[derive(Clone)]
pub struct Spawner {
    orders: SyncSender<Option<Order>>,
}

/// The running spawner thread.
#[derive(Debug)]
pub struct SpawnerThread {
    spawner: Spawner,
    thread: Option<JoinHandle<()>>,
}

impl SpawnerThread {
    /// Starts the thread; arbiters it makes belong to `system`.
    pub fn start(system: System) -> Result<SpawnerThread> {
        let (orders, inbox) = sync_channel(ORDERS);
        let thread = std::thread::Builder::new()
            .name("insula-spawner".into())
            .spawn(move || serve(&system, &inbox))
            .map_err(|error| Error::internal("the spawner thread could not be started", error.to_string()))?;
        Ok(SpawnerThread { spawner: Spawner { orders }, thread: Some(thread) })
    }

    /// A handle for leaving orders.
    pub fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// Carries out what was ordered before, then ends the thread.
    pub fn stop(&mut self) {
        // a closed channel means the thread has ended already
        let _ = self.spawner.orders.send(None);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the spawner thread panicked");
        }
    }
}

fn serve(system: &System, inbox: &Receiver<Option<Order>>) {
    System::set_current(system.clone());
    while let Ok(Some(order)) = inbox.recv() {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(order)).is_err() {
            tracing::error!("an actor could not be started: its constructor panicked");
        }
    }
}

impl Spawner {
    /// Leaves an order to be carried out on the spawner thread. Fails when thousands wait already or the thread has ended.
    pub fn order(&self, order: impl FnOnce() + Send + 'static) -> Result<()> {
        self.orders.try_send(Some(Box::new(order))).map_err(|error| match error {
            TrySendError::Full(_) => {
                Error::internal("too many actors are being started", format!("{ORDERS} orders wait"))
            }
            TrySendError::Disconnected(_) => Error::internal("the server is stopping", "the spawner thread has ended"),
        })
    }

    /// Makes an arbiter on the spawner thread and waits for it. Must not be called on a loop.
    pub fn arbiter(&self, loop_kind: LoopKind) -> Result<OwnLoop> {
        let (done, made) = sync_channel(1);
        self.order(move || {
            // the receiver is gone only if the caller panicked
            let _ = done.send(OwnLoop::make(loop_kind));
        })?;
        made.recv()
            .map_err(|_| Error::internal("an event loop could not be started", "the arbiter's constructor panicked"))
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}

/// What an arbiter's thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// A tenant's loop: timers, no sockets, a little less urgent than the listeners.
    Tenant,
    /// The router's loop.
    Router,
    /// A worker's loop, which blocks in kernels.
    Worker,
}

/// An actor's own event loop and thread.
pub struct OwnLoop {
    arbiter: Arbiter,
}

impl OwnLoop {
    fn make(kind: LoopKind) -> OwnLoop {
        let arbiter = Arbiter::with_tokio_rt(move || {
            if kind == LoopKind::Tenant {
                insula_exec::topology::lower_current_thread_priority(TENANT_NICENESS);
            }
            // without the I/O driver a loop costs no descriptor; a runtime cannot be made only when memory is out
            tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime without I/O needs only memory")
        });
        OwnLoop { arbiter }
    }

    /// Where actors can be started.
    pub fn handle(&self) -> ArbiterHandle {
        self.arbiter.handle()
    }

    /// Ends the loop and its thread; what still runs on it is dropped.
    pub fn stop(self) {
        self.arbiter.stop();
        if self.arbiter.join().is_err() {
            tracing::error!("an event loop's thread panicked");
        }
    }
}

impl fmt::Debug for OwnLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnLoop")
    }
}

/// Tenants' loops yield to the listeners' and the kernels' threads when cores are short.
const TENANT_NICENESS: i32 = 5;
