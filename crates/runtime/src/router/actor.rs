//! The router as an actor: the only writer of the route table. A thin shell over [`RouterState`].

use std::sync::Arc;

use actix::{Actor, Context, Handler};

use crate::faults::{FaultPoint, Faults};
use crate::router::messages::Place;
use crate::router::route_table::Routes;
use crate::router::state::RouterState;
use crate::supervision::DownNotice;

/// Placements that may wait: models loaded at the same moment.
const MAILBOX: usize = 1024;

/// The one router of a runtime.
#[derive(Debug)]
pub struct RouterActor {
    state: RouterState,
    routes: Arc<Routes>,
    faults: Arc<Faults>,
    _notice: DownNotice,
}

impl RouterActor {
    /// A router that goes on from the table in force.
    pub fn new(shards: usize, routes: Arc<Routes>, faults: Arc<Faults>, notice: DownNotice) -> RouterActor {
        RouterActor { state: RouterState::new(shards), routes, faults, _notice: notice }
    }
}

impl Actor for RouterActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Place> for RouterActor {
    type Result = ();

    fn handle(&mut self, message: Place, _: &mut Context<Self>) {
        self.faults.hit(FaultPoint::Router);
        let table = self.state.place(&self.routes.load(), &message.0);
        self.routes.publish(table);
    }
}
