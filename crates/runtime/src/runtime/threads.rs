//! The System's own thread and the router's loop: how they start and end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use actix::Actor;
use actix_rt::System;
use arc_swap::ArcSwapOption;
use insula_core::{Error, Result};
use insula_telemetry::metrics::{Actor as ActorKind, Metrics};

use crate::faults::Faults;
use crate::router::RouterHandle;
use crate::router::actor::RouterActor;
use crate::router::route_table::Routes;
use crate::settings::RuntimeSettings;
use crate::spawner::{LoopKind, OwnLoop, Spawner};
use crate::supervision::DownNotice;

/// The named thread that runs the actix System.
#[derive(Debug)]
pub struct SystemThread {
    system: System,
    thread: JoinHandle<()>,
}

impl SystemThread {
    /// Starts it.
    pub fn start() -> Result<SystemThread> {
        let (ready, made) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("insula-system".into())
            .spawn(move || {
                let runner = System::new();
                // the receiver waits below; it is gone only if its thread panicked
                let _ = ready.send(System::current());
                if let Err(error) = runner.run() {
                    tracing::error!(%error, "the actor system ended with an error");
                }
            })
            .map_err(|error| Error::internal("the actor system could not be started", error.to_string()))?;
        let system =
            made.recv().map_err(|_| Error::internal("the actor system could not be started", "its thread panicked"))?;
        Ok(SystemThread { system, thread })
    }

    /// The System, for threads that make arbiters.
    pub fn system(&self) -> System {
        self.system.clone()
    }

    /// Ends the System and joins its thread.
    pub fn stop(self) {
        self.system.stop();
        if self.thread.join().is_err() {
            tracing::error!("the actor system's thread panicked");
        }
    }
}

/// The router's loop, and what is needed to build the router again.
#[derive(Debug)]
pub struct RouterHome {
    builder: Arc<RouterBuilder>,
    own_loop: OwnLoop,
}

#[derive(Debug)]
struct RouterBuilder {
    shards: usize,
    routes: Arc<Routes>,
    address: Arc<ArcSwapOption<actix::Addr<RouterActor>>>,
    arbiter: actix_rt::ArbiterHandle,
    released: Arc<AtomicBool>,
    faults: Arc<Faults>,
    metrics: Metrics,
    spawner: Spawner,
}

impl RouterHome {
    /// Makes the loop and starts the router for `shards` shards.
    pub fn open(
        spawner: Spawner,
        shards: usize,
        faults: Arc<Faults>,
        settings: &RuntimeSettings,
    ) -> Result<RouterHome> {
        let own_loop = spawner.arbiter(LoopKind::Router)?;
        let builder = Arc::new(RouterBuilder {
            shards,
            routes: Arc::new(Routes::default()),
            address: Arc::new(ArcSwapOption::empty()),
            arbiter: own_loop.handle(),
            released: Arc::new(AtomicBool::new(false)),
            faults,
            metrics: settings.metrics.clone(),
            spawner,
        });
        builder.build();
        Ok(RouterHome { builder, own_loop })
    }

    /// Reaches whichever router is alive.
    pub fn handle(&self) -> RouterHandle {
        RouterHandle::new(self.builder.address.clone(), self.builder.routes.clone())
    }

    /// Ends the router and its loop.
    pub fn close(self) {
        self.builder.released.store(true, Ordering::SeqCst);
        self.builder.address.store(None);
        self.own_loop.stop();
    }
}

impl RouterBuilder {
    fn build(self: &Arc<Self>) {
        let builder = self.clone();
        let notice = DownNotice::new(self.released.clone(), move || builder.order_rebuild());
        let (shards, routes, faults) = (self.shards, self.routes.clone(), self.faults.clone());
        let address =
            RouterActor::start_in_arbiter(&self.arbiter, move |_| RouterActor::new(shards, routes, faults, notice));
        self.address.store(Some(Arc::new(address)));
    }

    /// Called by the dying router on its own loop: leaves an order and returns. Serving goes on by the last table.
    fn order_rebuild(self: Arc<Self>) {
        self.address.store(None);
        self.metrics.count_rebuild(ActorKind::Router);
        let spawner = self.spawner.clone();
        let order = move || {
            tracing::warn!("the router panicked and is built again");
            self.build();
        };
        if let Err(error) = spawner.order(order) {
            tracing::error!(?error, "the router could not be built again");
        }
    }
}
