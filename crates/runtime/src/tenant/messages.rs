//! What a tenant's actor is told, by whom, and what it answers. The public handle sends these; nobody else does.

use actix::Message;
use insula_core::{Error, ModelName, Result};

use crate::loader::LoadedVersions;
use crate::payload::RequestJob;
use crate::tenant::state::LifeCycle;

/// Sent by `submit` for a body that is too dear for the caller's loop: decode it here, in steps, and queue it. Answered
/// through the job itself.
#[derive(Debug)]
pub struct DecodeBody(pub RequestJob);

impl Message for DecodeBody {
    type Result = ();
}

/// Sent when the loader is done with a model: put what was loaded in force, or note why it was not.
#[derive(Debug)]
pub struct Install {
    /// The name the tenant calls it.
    pub model: ModelName,
    /// What the loader says.
    pub outcome: Result<LoadedVersions, Error>,
}

impl Message for Install {
    type Result = Result<()>;
}

/// Sent by an unload: take the model out; the answer says whether it was there.
#[derive(Debug)]
pub struct Remove(pub ModelName);

impl Message for Remove {
    type Result = bool;
}

/// Sent by start, suspension and stop: go on to this part of life if it follows; the answer is where the tenant stands now.
#[derive(Debug)]
pub struct Advance(pub LifeCycle);

impl Message for Advance {
    type Result = Result<LifeCycle>;
}
