//! One turn of a worker: take a batch from the shard, run it, settle it. Everything between the actor's shell and the run
//! of a batch; it holds the worker's arena.

use std::sync::Arc;
use std::time::Duration;

use insula_memory::Scratch;
use insula_telemetry::metrics::ModelMetrics;
use smallvec::SmallVec;

use crate::fair_queue::{Batch, PlanKey, Settlement, TenantSlot};
use crate::payload::Claimed;
use crate::shard::Taken;
use crate::worker::WorkerBuilder;
use crate::worker::batch::{BatchRunner, Ran};

/// The longest sleep of a worker that nobody wakes; a safety net, not a part of the protocol.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A worker's arena and where its batches come from.
#[derive(Debug)]
pub struct WorkerTurn {
    parts: Arc<WorkerBuilder>,
    arena: Scratch,
    sleep: Duration,
}

/// The tenants of a batch with where their use of the model is counted.
type Counted = SmallVec<[(TenantSlot, ModelMetrics); 8]>;

impl WorkerTurn {
    /// A worker that runs its batches in `arena`.
    pub fn new(parts: Arc<WorkerBuilder>, arena: Scratch) -> WorkerTurn {
        WorkerTurn { parts, arena, sleep: LONGEST_SLEEP }
    }

    /// Runs the next batch; says whether there was anything to do.
    pub fn run_one(&mut self) -> bool {
        let now = self.parts.services().clock.now();
        match self.parts.shard().take(now) {
            Taken::Batch(batch) => {
                self.run(batch);
                return true;
            }
            Taken::HeldUntil(until) => self.sleep = until.since(now),
            Taken::Nothing => self.sleep = LONGEST_SLEEP,
        }
        false
    }

    /// Sleeps until a pusher or a stop wakes this worker, or what is held back may run.
    pub fn sleep(&self) {
        self.parts.shard().park(self.parts.index(), Some(self.sleep));
    }

    fn run(&mut self, mut batch: Batch<Claimed>) {
        let parts = self.parts.clone();
        let clock = &*parts.services().clock;
        let (plan, ticket) = (batch.plan, batch.ticket);
        let counted = counted(&mut batch.entries);
        if let Some(first) = batch.entries.first_mut() {
            first.item.payload().model.loaded.batches().observe_rows(batch.rows as usize);
        }
        let mut runner = BatchRunner { arena: &mut self.arena, clock, claimed: clock.now() };
        let ran = runner.run(batch.entries);
        self.note_guilty(plan, &ran);
        let settlement = match &ran.per_tenant {
            Some(bill) => Settlement::PerTenant(bill),
            None => Settlement::Measured(ran.device),
        };
        for share in parts.shard().complete(ticket, settlement, clock.now()) {
            if let Some((_, metrics)) = counted.iter().find(|(tenant, _)| *tenant == share.tenant) {
                metrics.add_device_time(share.device);
            }
        }
    }

    fn note_guilty(&self, plan: PlanKey, ran: &Ran) {
        let now = self.parts.services().clock.now();
        for tenant in &ran.guilty {
            let until = self.parts.services().unmixing.lock().note(*tenant, plan, now);
            self.parts.shard().unmix(*tenant, plan, until, now);
            tracing::warn!(
                ?tenant,
                ?plan,
                "a request made its batch fail: its tenant's rows of this model run unmixed"
            );
        }
    }
}

fn counted(entries: &mut [crate::worker::batch::ClaimedEntry]) -> Counted {
    let mut counted = Counted::new();
    for entry in entries {
        if !counted.iter().any(|(tenant, _)| *tenant == entry.tenant) {
            counted.push((entry.tenant, entry.item.payload().model.metrics.clone()));
        }
    }
    counted
}
