//! What a job carries: its body with a decoder, then the decoded request with its tensors and room for its outputs. The job
//! cell owns it, so that a caller who goes away frees it at once. Submission makes it, a worker turns it into a reply.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use insula_core::codec::DECODE_STEP_BYTES;
use insula_core::{CheckedRequest, Code, Decode, Error, Nanos, Refusal, Result};
use insula_memory::{RequestMemory, ResponseMemory};
use tokio::sync::oneshot;

use crate::admission::permit::{Permit, QueuePlace};
use crate::fair_queue::Weight;
use crate::faults::{FaultPoint, Faults};
use crate::job::{ClaimedJob, Job};
use crate::model::{Planned, ServedModel};
use crate::plans::ClassPlans;
use crate::reply::{Reply, Timings};
use crate::shard::{SchedulerFault, ShardEntry};

/// What a job is answered with.
pub type Answer = Result<Reply>;

/// A job of this runtime.
pub type RequestJob = Job<Payload, Answer>;

/// A job that a worker has claimed.
pub type Claimed = ClaimedJob<Payload, Answer>;

/// A job in a fair queue, with the place that it holds there until it leaves, cancelled or not.
#[derive(Debug)]
pub struct QueuedJob {
    /// The job.
    pub job: RequestJob,
    /// Its place.
    pub place: QueuePlace,
    /// Faults that tests arm.
    pub faults: Arc<Faults>,
}

impl ShardEntry for QueuedJob {
    type Claimed = Claimed;

    /// Takes the job for a batch, or gives it back if nobody waits for its answer any more.
    fn claim(self, now: Nanos) -> std::result::Result<Claimed, QueuedJob> {
        self.faults.hit(FaultPoint::Batcher);
        let QueuedJob { mut job, place, faults } = self;
        // its caller's timer is about to tell: it costs no device time any more
        let late = job.with_payload(|payload| payload.timeline.deadline <= now);
        if late != Some(false) {
            return Err(QueuedJob { job, place, faults });
        }
        job.claim().map_err(|job| QueuedJob { job, place, faults })
    }

    fn fail(self, fault: SchedulerFault) {
        if let Ok(claimed) = self.job.claim() {
            claimed.finish(Err(match fault {
                SchedulerFault::Struck => Error::internal(
                    "the request failed because of a fault of the server",
                    "the fair queue panicked with it in hand",
                ),
                SchedulerFault::StartedOver => started_over(),
            }));
        }
    }
}

fn started_over() -> Error {
    let retry_after = Duration::from_millis(100);
    let refusal = Refusal { limit: "shard_unhealthy", value: 0.0, used: 0.0, window: Duration::ZERO, retry_after };
    Error::unavailable("the queue had to start over because of a fault of the server: try again", refusal)
}

/// The times and limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct Timeline {
    /// Admission.
    pub arrived: Nanos,
    /// The push to the fair queue; the same as `arrived` before that.
    pub queued: Nanos,
    /// After this nobody waits for the answer.
    pub deadline: Nanos,
}

/// A body with its decoder.
pub struct Undecoded {
    /// Where the body lies and its tensors will.
    pub memory: RequestMemory,
    /// Reads it.
    pub decode: Box<dyn Decode>,
    /// Told if the request turns out to want an earlier deadline.
    pub earlier: Option<oneshot::Sender<Nanos>>,
}

/// A request that is ready to run.
#[derive(Debug)]
pub struct Ready {
    /// Its tensors.
    pub inputs: RequestMemory,
    /// What it asks for.
    pub request: CheckedRequest,
    /// The plans it runs with.
    pub plans: Arc<ClassPlans>,
    /// Room for the outputs it wants.
    pub outputs: ResponseMemory,
}

/// A request that has been read and has no plans yet.
#[derive(Debug)]
pub struct Decoded {
    /// Its tensors.
    pub inputs: RequestMemory,
    /// What it asks for.
    pub request: CheckedRequest,
}

/// How far a request is.
#[derive(Debug)]
pub enum Stage {
    /// Its body is being read.
    Undecoded(Box<Undecoded>),
    /// It is read and needs plans.
    Decoded(Box<Decoded>),
    /// It can run.
    Ready(Box<Ready>),
    /// Reading it failed, or is under way on this very call.
    Spent,
}

/// What a job carries.
pub struct Payload {
    /// How far it is.
    pub stage: Stage,
    /// The version that answers.
    pub model: Arc<ServedModel>,
    /// Its place among its tenant's admitted requests.
    pub permit: Permit,
    /// Its place in the fair queues, until it is pushed.
    pub place: Option<QueuePlace>,
    /// The tenant's share when it was admitted.
    pub weight: Weight,
    /// When what happened.
    pub timeline: Timeline,
    /// Whether an actor works on it outside any guard: if that dies now, this request was the cause.
    pub in_hand: bool,
}

impl Payload {
    /// Runs one step of the decoder, at most 256 KiB; says whether the request has been read. A panic in it becomes an error of
    /// this request alone.
    pub fn decode_step(&mut self, faults: &Faults) -> Result<bool> {
        let Stage::Undecoded(mut undecoded) = std::mem::replace(&mut self.stage, Stage::Spent) else {
            return Err(Error::internal("the request could not be read", "it is not waiting to be decoded"));
        };
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            faults.hit(FaultPoint::Decode);
            undecoded.decode.step(&mut undecoded.memory, DECODE_STEP_BYTES)
        }));
        let panicked =
            |_| Error::internal("the request could not be read because of a fault of the server", "a decoder panicked");
        match stepped.map_err(panicked)?? {
            None => {
                self.stage = Stage::Undecoded(undecoded);
                Ok(false)
            }
            Some(request) => {
                self.note_timeout(&request, undecoded.earlier);
                let mut inputs = undecoded.memory;
                inputs.finish_decoding();
                self.stage = Stage::Decoded(Box::new(Decoded { inputs, request }));
                Ok(true)
            }
        }
    }

    fn note_timeout(&mut self, request: &CheckedRequest, earlier: Option<oneshot::Sender<Nanos>>) {
        let Some(timeout) = request.timeout else { return };
        self.timeline.deadline = self.timeline.deadline.min(self.timeline.arrived + timeout);
        if let Some(earlier) = earlier {
            // a caller that has gone needs no deadline
            let _ = earlier.send(self.timeline.deadline);
        }
    }

    /// The plans for the request that has been read, if they are there.
    pub fn plans(&self) -> Result<Planned> {
        match &self.stage {
            Stage::Decoded(decoded) => self.model.loaded.plans_for(&decoded.request, &decoded.inputs),
            Stage::Undecoded(_) | Stage::Ready(_) | Stage::Spent => Err(not_ready()),
        }
    }

    /// Makes the request that has been read ready to run with `plans`; `room` reserves its outputs.
    pub fn plan(
        &mut self,
        plans: Arc<ClassPlans>,
        room: impl FnOnce(&ServedModel, &ClassPlans, &CheckedRequest) -> Result<ResponseMemory>,
    ) -> Result<()> {
        let Stage::Decoded(decoded) = std::mem::replace(&mut self.stage, Stage::Spent) else {
            return Err(not_ready());
        };
        let Decoded { inputs, request } = *decoded;
        let outputs = room(&self.model, &plans, &request)?;
        self.stage = Stage::Ready(Box::new(Ready { inputs, request, plans, outputs }));
        Ok(())
    }

    /// The request, once it is ready.
    pub fn ready(&mut self) -> Result<&mut Ready> {
        match &mut self.stage {
            Stage::Ready(ready) => Ok(ready),
            Stage::Undecoded(_) | Stage::Decoded(_) | Stage::Spent => Err(not_ready()),
        }
    }

    /// The answer, once the outputs are written.
    pub fn into_answer(self, run: Run) -> Answer {
        let Stage::Ready(ready) = self.stage else { return Err(not_ready()) };
        let timings = Timings {
            queue: run.claimed.since(self.timeline.queued),
            device: run.device,
            total: run.done.since(self.timeline.arrived),
            rows: ready.request.rows(),
            batch_rows: run.batch_rows,
        };
        Ok(Reply::new(ready.outputs, ready.request.reply, timings, self.permit))
    }
}

/// What is known of the run that answered a request.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// When its batch was taken.
    pub claimed: Nanos,
    /// The run of its batch.
    pub device: Duration,
    /// When the outputs were there.
    pub done: Nanos,
    /// All rows of the batch.
    pub batch_rows: usize,
}

fn not_ready() -> Error {
    Error::internal(
        "the request could not be computed because of a fault of the server",
        "it was queued before it was decoded",
    )
}

/// The error of a request whose deadline passed after `waited`.
pub fn deadline_passed(waited: Duration) -> Error {
    let message =
        format!("the deadline passed after {} ms: ask for less at once, or raise the timeout", waited.as_millis());
    Error::new(Code::DeadlineExceeded, message)
}

impl fmt::Debug for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undecoded").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("model", &self.model.name)
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}
