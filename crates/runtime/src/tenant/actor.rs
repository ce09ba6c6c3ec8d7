//! A tenant's actor on its own loop: the only writer of its tenant's state, of which it publishes a snapshot. A thin shell:
//! what changes how stands in `state`, how a body becomes an entry in `queueing`.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler};
use insula_core::{Error, Result};

use crate::faults::FaultPoint;
use crate::model::ModelVersions;
use crate::payload::RequestJob;
use crate::supervision::DownNotice;
use crate::tenant::TenantCore;
use crate::tenant::messages::{Advance, DecodeBody, Install, Remove};
use crate::tenant::queueing::fail;
use crate::tenant::state::{LifeCycle, TenantState};

/// Messages that may wait beside the bodies of admitted requests.
const MAILBOX_SPARE: usize = 64;

/// How often freed memory is cleared while the loop is idle, and how much at a time (about 1 ms of work).
const SCRUB_INTERVAL: Duration = Duration::from_millis(250);
const SCRUB_BYTES: usize = 32 << 20;

/// The actor of one tenant.
#[derive(Debug)]
pub struct TenantActor {
    core: Arc<TenantCore>,
    state: TenantState,
    _notice: DownNotice,
}

impl TenantActor {
    /// An actor that goes on from what `core` has published last.
    pub fn new(core: Arc<TenantCore>, notice: DownNotice) -> TenantActor {
        let state = TenantState::from_snapshot(&core.snapshot());
        TenantActor { core, state, _notice: notice }
    }

    fn publish(&self) {
        self.core.publish(self.state.snapshot());
    }
}

impl Actor for TenantActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        // every admitted request can have its body here at once, so that sending one never waits for room
        let concurrency = self.core.snapshot().quota.concurrency as usize;
        context.set_mailbox_capacity(concurrency + MAILBOX_SPARE);
        context.run_interval(SCRUB_INTERVAL, |actor, _| {
            actor.core.domain().scrub(SCRUB_BYTES);
        });
    }
}

impl Handler<DecodeBody> for TenantActor {
    type Result = ();

    fn handle(&mut self, DecodeBody(mut job): DecodeBody, _: &mut Context<Self>) {
        job.with_payload(|payload| payload.in_hand = true);
        self.core.faults().hit(FaultPoint::TenantHandler);
        job.with_payload(|payload| payload.in_hand = false);
        // on the loop but not in the actor's context: what is being decoded outlives an actor that dies
        actix_rt::spawn(decode(self.core.clone(), job));
    }
}

/// Decodes in steps; between two of them the loop serves what else has come.
async fn decode(core: Arc<TenantCore>, mut job: RequestJob) {
    loop {
        match core.decode_step(&mut job) {
            Some(Ok(false)) => tokio::task::yield_now().await,
            Some(Ok(true)) => return core.queue(job),
            Some(Err(error)) => return fail(job, error),
            None => return,
        }
    }
}

impl Handler<Install> for TenantActor {
    type Result = Result<()>;

    fn handle(&mut self, Install { model, outcome }: Install, _: &mut Context<Self>) -> Result<()> {
        if matches!(self.state.life(), LifeCycle::Stopped | LifeCycle::Failed) {
            return Err(self
                .state
                .life()
                .check_serving(self.core.id())
                .err()
                .unwrap_or_else(|| Error::not_found("gone")));
        }
        let metrics = self.core.services().metrics.register_model(self.core.metrics(), &model);
        let kept = self.state.versions(&model);
        let all = outcome.map(|loaded| loaded.beside(kept));
        match all.and_then(|versions| ModelVersions::new(&model, versions, &metrics)) {
            Ok(versions) => {
                self.state.install(model, versions);
                self.publish();
                Ok(())
            }
            Err(error) => {
                self.state.note_failure(model, error.clone());
                self.publish();
                Err(error)
            }
        }
    }
}

impl Handler<Remove> for TenantActor {
    type Result = bool;

    fn handle(&mut self, Remove(model): Remove, _: &mut Context<Self>) -> bool {
        let removed = self.state.remove(&model);
        self.core.services().metrics.remove_model(self.core.metrics(), &model);
        self.publish();
        removed
    }
}

impl Handler<Advance> for TenantActor {
    type Result = Result<LifeCycle>;

    fn handle(&mut self, Advance(next): Advance, _: &mut Context<Self>) -> Result<LifeCycle> {
        if self.state.advance(next) {
            self.publish();
        }
        Ok(self.state.life())
    }
}
