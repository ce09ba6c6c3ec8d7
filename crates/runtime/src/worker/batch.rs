//! One batch on its way through a plan: gather, run, answer. When a run panics or fails, the batch is run again by tenant,
//! then by request within the tenant that failed again, so that only the guilty request fails. It knows no queue: it gets
//! a batch and tells who is to bear which device time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use insula_core::{Clock, Error, Nanos};
use insula_exec::{BatchIo, EntryIo, StopPoint};
use insula_memory::Scratch;
use smallvec::SmallVec;

use crate::fair_queue::{BatchEntry, TenantSlot};
use crate::payload::{Claimed, Payload, Ready, Run, deadline_passed};

/// A claimed job of a batch.
pub type ClaimedEntry = BatchEntry<Claimed>;

/// How a batch went.
#[derive(Debug, Default)]
pub struct Ran {
    /// Device time of all runs, failed ones included.
    pub device: Duration,
    /// Set when the batch did not run as formed: what each tenant is to bear.
    pub per_tenant: Option<Vec<(TenantSlot, Duration)>>,
    /// Tenants with a request that made the run fail.
    pub guilty: Vec<TenantSlot>,
    /// Requests answered, with their tenant's share of the device time counted.
    pub answered: usize,
}

/// Runs batches in one worker's arena.
#[derive(Debug)]
pub struct BatchRunner<'a> {
    /// The worker's arena.
    pub arena: &'a mut Scratch,
    /// The time.
    pub clock: &'a dyn Clock,
    /// When the batch was claimed.
    pub claimed: Nanos,
}

/// Batches are not stopped between steps yet: a slice ends with its batch.
struct RunToTheEnd;

impl StopPoint for RunToTheEnd {
    fn should_stop(&mut self) -> bool {
        false
    }
}

enum Attempt {
    Answered(Duration),
    Failed { entries: Vec<ClaimedEntry>, took: Duration, error: Error },
}

impl BatchRunner<'_> {
    /// Runs `entries` as one batch; on a failure by tenant, then by request. Every entry is answered when it returns.
    pub fn run(&mut self, entries: Vec<ClaimedEntry>) -> Ran {
        let mut ran = Ran::default();
        let (entries, failed) = match self.attempt(entries, &mut ran) {
            Attempt::Answered(_) => return ran,
            Attempt::Failed { entries, took, error } if entries.len() == 1 => {
                let mut bill = Bill::default();
                self.condemn(entries, took, &error, &mut bill, &mut ran);
                ran.per_tenant = Some(bill.0);
                return ran;
            }
            Attempt::Failed { entries, took, .. } => (entries, took),
        };
        let mut bill = Bill::default();
        for group in by_tenant(entries) {
            self.run_tenant(group, &mut bill, &mut ran);
        }
        bill.split(failed, &ran.guilty);
        ran.per_tenant = Some(bill.0);
        ran
    }

    fn run_tenant(&mut self, group: Vec<ClaimedEntry>, bill: &mut Bill, ran: &mut Ran) {
        let Some(tenant) = group.first().map(|entry| entry.tenant) else { return };
        match self.attempt(group, ran) {
            Attempt::Answered(took) => bill.add(tenant, took),
            Attempt::Failed { entries, took, error } if entries.len() == 1 => {
                self.condemn(entries, took, &error, bill, ran)
            }
            Attempt::Failed { entries, took, .. } => {
                bill.add(tenant, took);
                for entry in entries {
                    match self.attempt(vec![entry], ran) {
                        Attempt::Answered(took) => bill.add(tenant, took),
                        Attempt::Failed { entries, took, error } => self.condemn(entries, took, &error, bill, ran),
                    }
                }
            }
        }
    }

    /// Answers those that failed alone with `error`.
    fn condemn(&mut self, entries: Vec<ClaimedEntry>, took: Duration, error: &Error, bill: &mut Bill, ran: &mut Ran) {
        for entry in entries {
            bill.add(entry.tenant, took);
            if !ran.guilty.contains(&entry.tenant) {
                ran.guilty.push(entry.tenant);
            }
            entry.item.finish(Err(error.clone()));
        }
    }

    /// One run of `entries`. Rows that nobody waits for any more drop out first.
    fn attempt(&mut self, entries: Vec<ClaimedEntry>, ran: &mut Ran) -> Attempt {
        let mut entries = self.drop_unwanted(entries);
        let rows: usize = entries.iter().map(|entry| entry.rows as usize).sum();
        let Some(first) = entries.first_mut() else { return Attempt::Answered(Duration::ZERO) };
        let plan = first.item.payload().ready().map(|ready| ready.plans.plan_for(rows).clone());
        let started = self.clock.now();
        let outcome = plan.and_then(|plan| {
            self.arena.grow(plan.arena_bytes())?;
            self.launch(&*plan, &mut entries)
        });
        let done = self.clock.now();
        let took = done.since(started);
        ran.device += took;
        match outcome {
            Ok(()) => {
                ran.answered += entries.len();
                for entry in entries {
                    self.answer(entry, took, done, rows);
                }
                Attempt::Answered(took)
            }
            Err(error) => Attempt::Failed { entries, took, error },
        }
    }

    fn launch(&mut self, plan: &dyn insula_exec::LoweredPlan, entries: &mut [ClaimedEntry]) -> Result<(), Error> {
        if cfg!(debug_assertions) {
            self.arena.poison();
        }
        let mut batch = BatchIo::default();
        for entry in entries.iter_mut() {
            let rows = entry.rows as usize;
            batch.entries.push(entry_io(entry.item.payload(), rows)?);
        }
        let arena = self.arena.as_mut_slice();
        match catch_unwind(AssertUnwindSafe(|| plan.run(arena, &mut batch, &mut RunToTheEnd))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Error::internal(
                "the request could not be computed because of a fault of the server",
                "a kernel panicked",
            )),
        }
    }

    fn drop_unwanted(&self, entries: Vec<ClaimedEntry>) -> Vec<ClaimedEntry> {
        let now = self.clock.now();
        let mut wanted = Vec::with_capacity(entries.len());
        for mut entry in entries {
            let timeline = entry.item.payload().timeline;
            if timeline.deadline <= now {
                entry.item.finish(Err(deadline_passed(now.since(timeline.arrived))));
            } else if !entry.item.is_abandoned() {
                wanted.push(entry);
            }
        }
        wanted
    }

    fn answer(&self, entry: ClaimedEntry, took: Duration, done: Nanos, batch_rows: usize) {
        let run = Run { claimed: self.claimed, device: took, done, batch_rows };
        entry.item.finish_with(|payload| {
            payload.model.metrics.observe_queue_time(run.claimed.since(payload.timeline.queued));
            payload.into_answer(run)
        });
    }
}

/// Inputs and outputs of one payload as the plan wants them: in the model's order, unwanted outputs left out.
fn entry_io(payload: &mut Payload, rows: usize) -> Result<EntryIo<'_>, Error> {
    let wanted = payload.model.loaded.signature().outputs.len();
    let Ready { inputs, request, outputs, .. } = payload.ready()?;
    let mut io = EntryIo { rows, inputs: SmallVec::new(), outputs: SmallVec::new() };
    for tensor in request.inputs() {
        io.inputs.push(inputs.input_bytes(tensor.slot()));
    }
    io.outputs.resize_with(wanted, || None);
    for (wanted, bytes) in request.outputs().iter().zip(outputs.outputs_mut()) {
        match io.outputs.get_mut(wanted.output) {
            Some(place) => *place = Some(bytes),
            None => {
                return Err(Error::internal("an output of the model is missing", format!("output {}", wanted.output)));
            }
        }
    }
    Ok(io)
}

/// Splits a batch into one group a tenant, in the order of their first entries.
fn by_tenant(entries: Vec<ClaimedEntry>) -> Vec<Vec<ClaimedEntry>> {
    let mut groups: Vec<Vec<ClaimedEntry>> = Vec::new();
    for entry in entries {
        let group = groups.iter_mut().find(|group| group.first().is_some_and(|first| first.tenant == entry.tenant));
        match group {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

/// What each tenant is to bear.
#[derive(Debug, Default)]
struct Bill(Vec<(TenantSlot, Duration)>);

impl Bill {
    fn add(&mut self, tenant: TenantSlot, took: Duration) {
        match self.0.iter_mut().find(|(known, _)| *known == tenant) {
            Some((_, total)) => *total += took,
            None => self.0.push((tenant, took)),
        }
    }

    /// Puts the time of a run that failed on the tenants that made it fail; innocents bear only their good runs.
    fn split(&mut self, took: Duration, guilty: &[TenantSlot]) {
        let Ok(count) = u32::try_from(guilty.len()) else { return };
        for tenant in guilty {
            self.add(*tenant, took.checked_div(count).unwrap_or_default());
        }
    }
}
