//! The lane on which plans that are missing are built: one thread beside the serving ones, so that building takes no worker's
//! and no loop's time. Requests wait here, each with its tenant; everybody else goes on. A tenant has a few builds a second, and
//! further ones wait their turn.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use insula_core::{Clock, Error, Refusal, Result};
use insula_model::ShapeClass;
use parking_lot::{Condvar, Mutex};

use crate::fair_queue::TenantSlot;
use crate::model::{Built, LoadedModel};
use crate::payload::RequestJob;
use crate::plans::cache::ClassKey;
use crate::plans::waiting::{Next, Waiting};
use crate::tenant::TenantCore;

/// A request that waits for plans.
struct WaitingJob {
    core: Arc<TenantCore>,
    model: Arc<LoadedModel>,
    job: RequestJob,
}

struct Lane {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct State {
    waiting: Waiting<WaitingJob>,
    stopped: bool,
}

/// Where requests leave orders for plans; cheap to clone.
#[derive(Clone)]
pub struct Planner {
    lane: Arc<Lane>,
}

/// The running planner's thread.
pub struct PlannerThread {
    planner: Planner,
    thread: Option<JoinHandle<()>>,
}

impl PlannerThread {
    /// Starts the thread.
    pub fn start(clock: Arc<dyn Clock>) -> Result<PlannerThread> {
        let lane = Arc::new(Lane { state: Mutex::default(), changed: Condvar::new(), clock });
        let planner = Planner { lane: lane.clone() };
        let thread = std::thread::Builder::new()
            .name("insula-planner".into())
            .spawn({
                let planner = planner.clone();
                move || planner.work()
            })
            .map_err(|error| Error::internal("the planner could not be started", error.to_string()))?;
        Ok(PlannerThread { planner, thread: Some(thread) })
    }

    /// A handle for leaving orders.
    pub fn planner(&self) -> Planner {
        self.planner.clone()
    }

    /// Ends the thread and answers what still waits.
    pub fn stop(&mut self) {
        self.planner.lane.state.lock().stopped = true;
        self.planner.lane.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the planner's thread panicked");
        }
    }
}

impl Planner {
    /// Has `job` wait for plans of `class`; it is queued when they are there. `charged`: its tenant has had a build for it.
    pub(crate) fn order(
        &self,
        core: Arc<TenantCore>,
        model: Arc<LoadedModel>,
        class: ShapeClass,
        job: RequestJob,
        charged: bool,
    ) {
        let (key, tenant) = (ClassKey { model: model.key(), class }, core.slot());
        let mut state = self.lane.state.lock();
        if state.stopped {
            drop(state);
            crate::tenant::fail(job, stopped());
            return;
        }
        state.waiting.add(key, tenant, WaitingJob { core, model, job }, charged);
        drop(state);
        self.lane.changed.notify_one();
    }

    fn work(&self) {
        while let Some((key, tenant, jobs)) = self.next_order() {
            self.carry_out(key, tenant, jobs);
        }
        for waiting in self.lane.state.lock().waiting.drain() {
            crate::tenant::fail(waiting.job, stopped());
        }
    }

    /// The next order that is due; `None` once the lane has been stopped.
    fn next_order(&self) -> Option<(ClassKey, TenantSlot, Vec<WaitingJob>)> {
        let mut state = self.lane.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            // those whose callers have gone need no plan
            let alive = |waiting: &mut WaitingJob| waiting.job.with_payload(|_| ()).is_some();
            match state.waiting.next(self.lane.clock.now(), alive) {
                Next::Build(key, tenant, jobs) => return Some((key, tenant, jobs)),
                Next::Wait(time) => {
                    self.lane.changed.wait_for(&mut state, time);
                }
                Next::Nothing => self.lane.changed.wait(&mut state),
            }
        }
    }

    fn carry_out(&self, key: ClassKey, tenant: TenantSlot, jobs: Vec<WaitingJob>) {
        let Some(model) = jobs.first().map(|waiting| waiting.model.clone()) else { return };
        let started = self.lane.clock.now();
        let built = catch_unwind(AssertUnwindSafe(|| model.build_class(&key.class, tenant)));
        let built = built.unwrap_or_else(|_| {
            tracing::error!(model = ?model.key(), class = %key.class, "planning a model for these sizes panicked");
            Err(Error::internal(
                "the request could not be planned because of a fault of the server",
                "planning panicked",
            ))
        });
        let took = self.lane.clock.now().since(started);
        self.lane.state.lock().waiting.note(tenant, took);
        tracing::debug!(class = %key.class, ?took, ok = built.is_ok(), "planned a model for a class of requests");
        for WaitingJob { core, job, .. } in jobs {
            match &built {
                Ok(Built::Plans(plans)) => core.queue_with(job, plans.clone()),
                Ok(Built::NeedsValues) => core.queue_anew(job),
                Err(error) => crate::tenant::fail(job, error.clone()),
            }
        }
    }
}

fn stopped() -> Error {
    let retry_after = Duration::from_secs(1);
    let refusal = Refusal { limit: "draining", value: 0.0, used: 0.0, window: Duration::ZERO, retry_after };
    Error::unavailable("the server is stopping: try another one", refusal)
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planner")
    }
}

impl fmt::Debug for PlannerThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlannerThread")
    }
}

impl fmt::Debug for WaitingJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingJob").field("tenant", self.core.id()).finish_non_exhaustive()
    }
}
