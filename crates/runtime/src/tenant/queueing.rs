//! The middle of a request's way, on whichever loop it is: decode step by step, reserve the outputs, route, push. The
//! caller's loop drives it for cheap bodies, the tenant's for the rest.

use std::sync::Arc;

use insula_core::{CheckedRequest, Error, Result};
use insula_memory::ResponseMemory;

use crate::fair_queue::{Entry, Rows};
use crate::model::{Planned, ServedModel};
use crate::payload::{Payload, QueuedJob, RequestJob};
use crate::plans::ClassPlans;
use crate::tenant::TenantCore;

impl TenantCore {
    /// Runs one step of `job`'s decoder; `None` once its caller has gone, else whether it is ready to be queued.
    pub(super) fn decode_step(&self, job: &mut RequestJob) -> Option<Result<bool>> {
        let started = self.clock().now();
        let stepped = job.with_payload(|payload| payload.decode_step(self.faults()));
        self.metrics().add_host_time(self.clock().now().since(started));
        stepped
    }

    fn output_room(&self, model: &ServedModel, plans: &ClassPlans, request: &CheckedRequest) -> Result<ResponseMemory> {
        let places = crate::worker::outputs::output_places(plans, request)?;
        ResponseMemory::reserve(self.domain(), model.name.clone(), model.version, places)
    }

    /// Queues a job that has been read, or has it wait for its plans and queues it then. A job that cannot be queued is
    /// answered with the reason.
    pub(super) fn queue(self: &Arc<Self>, job: RequestJob) {
        self.queue_charged(job, false);
    }

    /// Queues a job whose class was not known in full, once it has been classed anew.
    pub(crate) fn queue_anew(self: &Arc<Self>, job: RequestJob) {
        self.queue_charged(job, true);
    }

    fn queue_charged(self: &Arc<Self>, mut job: RequestJob, charged: bool) {
        let planned = job.with_payload(|payload| Ok((payload.plans()?, payload.model.loaded.clone())));
        match planned {
            None => {}
            Some(Err(error)) => fail(job, error),
            Some(Ok((Planned::Plans(plans), _))) => self.queue_with(job, plans),
            Some(Ok((Planned::Missing(class), model))) => {
                self.services().planner.order(self.clone(), model, class, job, charged);
            }
        }
    }

    /// Picks a shard for a job that has been read and pushes it there, to run with `plans`.
    pub(crate) fn queue_with(&self, mut job: RequestJob, plans: Arc<ClassPlans>) {
        let _span = tracing::info_span!(target: insula_telemetry::WAY, "route").entered();
        let prepared = job.with_payload(|payload| self.prepare(payload, plans));
        match prepared {
            None => {}
            Some(Err(error)) => fail(job, error),
            Some(Ok(prepared)) => {
                let Prepared { shard, entry, place } = prepared;
                if job.enqueue() {
                    let item = QueuedJob { job, place, faults: self.services().faults.clone() };
                    let Entry { tenant, weight, plan, rows, priority, arrived, unmixed, item: () } = entry;
                    self.services().shards[shard].push(Entry {
                        tenant,
                        weight,
                        plan,
                        rows,
                        priority,
                        arrived,
                        unmixed,
                        item,
                    });
                }
            }
        }
    }

    fn prepare(&self, payload: &mut Payload, plans: Arc<ClassPlans>) -> Result<Prepared> {
        let (plan, max_rows) = (plans.key(), plans.max_rows());
        payload.plan(plans, |model, plans, request| self.output_room(model, plans, request))?;
        let model = payload.model.loaded.key();
        let request = &payload.ready()?.request;
        let (rows, priority) = (Rows::new(request.rows(), max_rows)?, request.priority);
        let services = self.services();
        let shard = services.router.routes().pick(model, self.next_turn(), |shard| services.backlog(shard))?.0;
        if shard >= services.shards.len() {
            return Err(Error::internal(
                "no worker serves this model",
                "the route table names a shard that is not there",
            ));
        }
        let place = payload.place.take();
        let place = place.ok_or_else(|| Error::internal("the request could not be queued", "its place is gone"))?;
        payload.timeline.queued = self.clock().now();
        let (tenant, weight, arrived) = (self.slot(), payload.weight, payload.timeline.queued);
        let entry = Entry { tenant, weight, plan, rows, priority, arrived, unmixed: false, item: () };
        Ok(Prepared { shard, entry, place })
    }
}

/// A job's entry but for the job itself.
struct Prepared {
    shard: usize,
    entry: Entry<()>,
    place: crate::admission::permit::QueuePlace,
}

/// Answers a job that never comes to a worker.
pub(crate) fn fail(job: RequestJob, error: Error) {
    if let Ok(claimed) = job.claim() {
        claimed.finish(Err(error));
    }
}
