//! The router's public handle. It is asked only when a model is placed; requests read the table in [`Routes`] directly.

pub mod actor;
pub mod messages;
pub mod route_table;
pub mod state;

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use arc_swap::ArcSwapOption;
use insula_core::{Error, Result};

use crate::model::LoadedModel;
use crate::router::actor::RouterActor;
use crate::router::messages::Place;
use crate::router::route_table::Routes;

/// How long a placement may wait for a router that is being rebuilt.
const REBUILD_PATIENCE: Duration = Duration::from_secs(2);
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Places models through whichever router actor is alive.
#[derive(Debug, Clone)]
pub struct RouterHandle {
    address: Arc<ArcSwapOption<Addr<RouterActor>>>,
    routes: Arc<Routes>,
}

impl RouterHandle {
    /// A handle for the router that publishes to `routes` and whose address is kept in `address`.
    pub fn new(address: Arc<ArcSwapOption<Addr<RouterActor>>>, routes: Arc<Routes>) -> RouterHandle {
        RouterHandle { address, routes }
    }

    /// The table that requests read.
    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// Gives `model` a place. Waits through a rebuild of the router; an error means that it did not come back.
    pub async fn place(&self, model: &Arc<LoadedModel>) -> Result<()> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(address) = self.address.load_full()
                && address.send(Place(model.clone())).await.is_ok()
            {
                return Ok(());
            }
            if waited >= REBUILD_PATIENCE {
                return Err(Error::internal("the model could not be placed on a worker", "the router does not answer"));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            waited += RETRY_PAUSE;
        }
    }
}
