//! What the router is told. Loaders send [`Place`] when a model is ready and wait for the answer before it is served.

use std::sync::Arc;

use actix::Message;

use crate::model::LoadedModel;

/// Give this model a place; answered when the table that has it is in force.
#[derive(Debug)]
pub struct Place(pub Arc<LoadedModel>);

impl Message for Place {
    type Result = ();
}
