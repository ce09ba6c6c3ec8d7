//! How a tenant's actor comes to be, comes back after a panic, and ends. Runs on the spawner thread or on the thread that
//! starts and stops the runtime, never on a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Actor;
use insula_core::{Error, Result};
use insula_telemetry::metrics::Actor as ActorKind;
use parking_lot::Mutex;

use crate::spawner::{LoopKind, OwnLoop};
use crate::supervision::{DownNotice, RebuildHistory};
use crate::tenant::actor::TenantActor;
use crate::tenant::messages::Advance;
use crate::tenant::state::{LifeCycle, TenantState};
use crate::tenant::{TenantCore, TenantHandle};

/// A tenant's loop with the actor on it, and what is needed to build the actor again.
#[derive(Debug)]
pub struct TenantHome {
    handle: TenantHandle,
    released: Arc<AtomicBool>,
    own_loop: Option<OwnLoop>,
}

impl TenantHome {
    /// Makes the tenant's loop and starts its actor there. Blocks until the actor can be reached.
    pub fn open(handle: TenantHandle) -> Result<TenantHome> {
        let own_loop = handle.core().services().spawner.arbiter(LoopKind::Tenant)?;
        let released = Arc::new(AtomicBool::new(false));
        let builder = Arc::new(Builder {
            core: handle.core().clone(),
            arbiter: own_loop.handle(),
            released: released.clone(),
            history: Mutex::new(RebuildHistory::default()),
        });
        builder.build();
        Ok(TenantHome { handle, released, own_loop: Some(own_loop) })
    }

    /// The tenant.
    pub fn handle(&self) -> &TenantHandle {
        &self.handle
    }

    /// Ends the actor and its loop, and closes the domain. Requests must have ended before.
    pub fn close(mut self) {
        self.released.store(true, Ordering::SeqCst);
        let core = self.handle.core();
        core.set_address(None);
        if let Some(own_loop) = self.own_loop.take() {
            own_loop.stop();
        }
        let mut state = TenantState::from_snapshot(&core.snapshot());
        state.advance(LifeCycle::Stopped);
        core.publish(state.snapshot());
        core.domain().close(core.clock().now());
    }
}

/// Builds a tenant's actor, as often as it dies, until it died too often.
struct Builder {
    core: Arc<TenantCore>,
    arbiter: actix_rt::ArbiterHandle,
    released: Arc<AtomicBool>,
    history: Mutex<RebuildHistory>,
}

impl Builder {
    fn build(self: &Arc<Self>) {
        let builder = self.clone();
        let notice = DownNotice::new(self.released.clone(), move || builder.order_rebuild());
        let core = self.core.clone();
        let address = TenantActor::start_in_arbiter(&self.arbiter, move |_| TenantActor::new(core, notice));
        self.core.set_address(Some(address));
    }

    /// Called by the dying actor on its own loop: leaves an order and returns.
    fn order_rebuild(self: Arc<Self>) {
        let core = self.core.clone();
        core.set_address(None);
        core.services().metrics.count_rebuild(ActorKind::Tenant);
        let order = move || {
            let now = self.core.clock().now();
            if self.history.lock().allow(now) {
                tracing::warn!(tenant = %self.core.id(), "a tenant's actor panicked and is built again");
                self.build();
            } else {
                self.give_up();
            }
        };
        if let Err(error) = core.services().spawner.order(order) {
            tracing::error!(tenant = %core.id(), ?error, "a tenant's actor could not be built again");
        }
    }

    fn give_up(&self) {
        tracing::error!(tenant = %self.core.id(), "a tenant's actor panicked too often and is set aside");
        let mut state = TenantState::from_snapshot(&self.core.snapshot());
        state.advance(LifeCycle::Failed);
        self.core.publish(state.snapshot());
    }
}

/// How long life's steps wait for an actor that is being built again.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

impl TenantHandle {
    /// Lets the tenant go on to `next`, if life allows; answers where it stands then.
    pub(crate) async fn advance(&self, next: LifeCycle) -> Result<LifeCycle> {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            if let Some(address) = self.core().address()
                && let Ok(now) = address.send(Advance(next)).await
            {
                return now;
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
        Err(Error::internal(
            "the tenant does not answer",
            format!("tenant `{}` could not advance to {next:?}", self.id()),
        ))
    }
}
