//! The way of an admitted request as its caller sees it: hand the body over, wait for the answer, withdraw on the deadline.
//! Dropping the future at any point withdraws the request and frees what it holds.

use std::sync::Arc;
use std::time::Duration;

use insula_core::{Decode, Error, Nanos, Result};
use insula_memory::RequestMemory;
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::admission::{Admitted, BodySink};
use crate::job::{JobHandle, JobReply};
use crate::payload::{Answer, Payload, RequestJob, Stage, Timeline, Undecoded, deadline_passed};
use crate::reply::Reply;
use crate::tenant::TenantCore;
use crate::tenant::messages::DecodeBody;
use crate::tenant::queueing::fail;

/// Work up to this long is done on the caller's loop: a hop to the tenant's costs more.
const HERE: Duration = Duration::from_micros(20);

/// How long a request waits for its tenant's actor to be built again.
const REBUILD_PATIENCE: Duration = Duration::from_secs(2);
const REBUILD_PAUSE: Duration = Duration::from_millis(2);

impl Admitted {
    /// Decodes `body`, queues the request and waits for its answer, until the tenant's timeout at the latest. Dropping the
    /// future withdraws the request: if no worker has claimed it, it never reaches a kernel.
    pub async fn submit(self, body: BodySink, decode: Box<dyn Decode>) -> Result<Reply> {
        let core = self.tenant.core().clone();
        let cheap = decode.predicted_cost(body.len()) <= HERE;
        let memory = RequestMemory::new(body.into_buffer(), self.request_bytes())?;
        let timeline = Timeline { arrived: self.arrived, queued: self.arrived, deadline: self.arrived + self.timeout };
        let (earlier, deadline_note) = match cheap {
            true => (None, None),
            false => Some(oneshot::channel()).unzip(),
        };
        let undecoded = Undecoded { memory, decode, earlier };
        let payload = Payload {
            stage: Stage::Undecoded(Box::new(undecoded)),
            model: self.model,
            permit: self.permit,
            place: Some(self.place),
            weight: self.weight,
            timeline,
            in_hand: false,
        };
        let (job, handle) = crate::job::new_job(payload);
        let mut waiter = Waiter { core: &core, handle, deadline_note, timeline };
        if cheap {
            waiter.timeline.deadline = decode_here(&core, job).unwrap_or(timeline.deadline);
            let span = tracing::info_span!(target: insula_telemetry::WAY, "queue and run");
            waiter.answer().instrument(span).await
        } else {
            let span = tracing::info_span!(target: insula_telemetry::WAY, "decode, queue and run");
            waiter.through_tenant(job).instrument(span).await
        }
    }
}

/// Decodes and queues on the caller's loop; says by when the request wants its answer.
fn decode_here(core: &Arc<TenantCore>, mut job: RequestJob) -> Option<Nanos> {
    let decoded = {
        let _span = tracing::info_span!(target: insula_telemetry::WAY, "decode").entered();
        loop {
            match core.decode_step(&mut job)? {
                Ok(false) => {}
                other => break other,
            }
        }
    };
    let deadline = job.with_payload(|payload| payload.timeline.deadline);
    match decoded {
        Ok(_) => core.queue(job),
        Err(error) => fail(job, error),
    }
    deadline
}

/// Waits for a job's answer.
struct Waiter<'a> {
    core: &'a TenantCore,
    handle: JobHandle<Payload, Answer>,
    deadline_note: Option<oneshot::Receiver<Nanos>>,
    timeline: Timeline,
}

/// What came first.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would cost an allocation a request")]
enum Came {
    Reply(JobReply<Answer>),
    Deadline,
}

impl Waiter<'_> {
    /// Waits for the answer of a job that is queued.
    async fn answer(mut self) -> Answer {
        match self.reply_or_deadline().await {
            Came::Reply(JobReply::Answered(answer)) => answer,
            // whoever found it late dropped it a moment before the timer here
            Came::Reply(JobReply::Lost) if self.is_late() => Err(self.expire()),
            Came::Reply(JobReply::Lost) => Err(lost("the job was dropped unanswered")),
            Came::Deadline => Err(self.expire()),
        }
    }

    /// Sends the job to its tenant's actor and waits. If the actor dies before it has looked at this job, the job goes to
    /// the next one; if this job was in its hand, the request fails.
    async fn through_tenant(mut self, job: RequestJob) -> Answer {
        let mut job = Some(job);
        let mut waited = Duration::ZERO;
        loop {
            if let Some(address) = self.core.address()
                && let Some(job) = job.take()
            {
                // a full mailbox would mean more bodies than admitted requests; a closed one gives the job back as lost
                drop(address.try_send(DecodeBody(job)));
                match self.reply_or_deadline().await {
                    Came::Reply(JobReply::Answered(answer)) => return answer,
                    Came::Reply(JobReply::Lost) => {}
                    Came::Deadline => return Err(self.expire()),
                }
            }
            if self.is_late() {
                return Err(self.expire());
            }
            job = job.or_else(|| self.handle.take_back());
            if job.as_mut().and_then(|job| job.with_payload(|payload| payload.in_hand)) != Some(false) {
                return Err(lost("the tenant's actor panicked with this request in hand"));
            }
            if waited >= REBUILD_PATIENCE {
                return Err(lost("the tenant's event loop does not answer"));
            }
            tokio::time::sleep(REBUILD_PAUSE).await;
            waited += REBUILD_PAUSE;
        }
    }

    async fn reply_or_deadline(&mut self) -> Came {
        loop {
            let left = self.timeline.deadline.since(self.core.clock().now());
            let Some(note) = &mut self.deadline_note else {
                return match tokio::time::timeout(left, &mut self.handle).await {
                    Ok(reply) => Came::Reply(reply),
                    Err(_) => Came::Deadline,
                };
            };
            tokio::select! {
                biased;
                reply = &mut self.handle => return Came::Reply(reply),
                earlier = note => {
                    self.deadline_note = None;
                    if let Ok(earlier) = earlier {
                        self.timeline.deadline = self.timeline.deadline.min(earlier);
                    }
                }
                () = tokio::time::sleep(left) => return Came::Deadline,
            }
        }
    }

    fn is_late(&self) -> bool {
        self.timeline.deadline <= self.core.clock().now()
    }

    fn expire(&self) -> Error {
        self.handle.expire();
        deadline_passed(self.timeline.deadline.since(self.timeline.arrived))
    }
}

fn lost(detail: &str) -> Error {
    Error::internal("the request failed because of a fault of the server", detail)
}
