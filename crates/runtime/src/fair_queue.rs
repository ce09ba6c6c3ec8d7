//! Start-time fair queueing on measured device time: which entries run next on a shard, and in which batch. Pure state: no
//! clock, no lock, no await; time comes as a value. A shard drives it under its lock; nobody else holds one.
//!
//! After Goyal, Vin and Cheng, "Start-time Fair Queuing" (1996): each tenant has a finish tag F in ns of device time over its
//! weight; virtual time V is the start tag of the latest batch's leader. A tenant that becomes backlogged starts at
//! max(F, V), so it neither saves up idle time nor escapes its debts. The leader of a batch is the entry with the smallest
//! start tag. Others of the same plan ride along while their start tags are near V, each paying what it adds to the
//! estimate; when the batch has ended, the measured time is shared by rows and the tags are corrected.
//!
//! A batch of several entries never takes longer than a slice C as predicted, also when its tenant is alone: one that
//! comes meanwhile waits for a slice at most, not for a full batch.

mod batch;
pub mod constants;
mod entry;
mod estimate;
mod form;
mod plan_queue;
mod ranking;
mod rebuild;
mod settle;
mod tag;
mod tenant;

use std::time::Duration;

use insula_core::Nanos;

pub use batch::{Batch, BatchEntry, BatchTicket, DeviceShare, Formed, Forming, Settlement};
pub use entry::{Entry, PlanKey, Rows, TenantSlot};
pub use estimate::{CostCurve, Estimator};
pub use tag::{Tag, Weight};

use entry::PlanMap;
use plan_queue::PlanQueue;
use ranking::Ranking;
use tenant::{Queued, Tenant};

/// What a fair queue is set up with.
#[derive(Debug, Clone, Copy)]
pub struct FairQueueSettings {
    /// C: the device time that a batch of several entries may take.
    pub slice: Duration,
    /// How long the oldest entry of a batch that is not full may be held back for more rows; zero never waits.
    pub max_queue_delay: Duration,
}

/// A shard's queue of entries `E`.
#[derive(Debug)]
pub struct FairQueue<E> {
    slice: u64,
    max_queue_delay: Duration,
    tenants: Vec<Option<Tenant<E>>>,
    plans: PlanMap<PlanQueue>,
    /// The backlogged tenants.
    leaders: Ranking,
    estimator: Estimator,
    virtual_time: Tag,
    /// The tenants that were backlogged since the queue was last idle.
    busy: Vec<TenantSlot>,
    busy_period: u64,
    /// Distinguishes batches formed before everything was thrown away.
    epoch: u64,
    numbers: u64,
    queued: usize,
    running: usize,
    queued_nanos: u64,
    running_nanos: u64,
    free_rows: u64,
    /// The entry that is being worked on.
    in_hand: Option<InHand>,
}

#[derive(Debug, Clone, Copy)]
struct InHand {
    tenant: TenantSlot,
    plan: PlanKey,
    sequence: u64,
}

/// Counts of a fair queue at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FairQueueCounts {
    /// Entries in the queue, cancelled ones that have not come up yet included.
    pub queued: usize,
    /// Tenants with entries in the queue.
    pub waiting_tenants: usize,
    /// Batches formed and not completed.
    pub running: usize,
    /// Predicted device time of what is queued and running.
    pub backlog: Duration,
    /// V in whole nanoseconds.
    pub virtual_nanos: u64,
    /// Rows that filled padding at no charge, ever.
    pub free_rows: u64,
}

/// What a tenant used of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantUse {
    /// Its entries in the queue.
    pub queued: usize,
    /// Device time it bore.
    pub device: Duration,
    /// Rows of its that filled padding at no charge.
    pub free_rows: u64,
    /// Its finish tag; while it has entries, the start tag of the next one.
    pub finish: Tag,
}

impl<E> FairQueue<E> {
    /// An empty queue at the start of virtual time.
    pub fn new(settings: FairQueueSettings) -> Self {
        let slice = nanos(settings.slice).max(1);
        FairQueue {
            slice,
            max_queue_delay: settings.max_queue_delay,
            tenants: Vec::new(),
            plans: PlanMap::default(),
            leaders: Ranking::default(),
            estimator: Estimator::new(slice),
            virtual_time: Tag::ZERO,
            busy: Vec::new(),
            busy_period: 1,
            epoch: 0,
            numbers: 0,
            queued: 0,
            running: 0,
            queued_nanos: 0,
            running_nanos: 0,
            free_rows: 0,
            in_hand: None,
        }
    }

    /// Adds an entry. A tenant that is new, or has another weight than before, is noted with it.
    pub fn push(&mut self, entry: Entry<E>) {
        let (slot, plan, rows, arrived) = (entry.tenant, entry.plan, entry.rows, entry.arrived);
        self.set_weight(slot, entry.weight);
        let sequence = self.next_number();
        let Some(tenant) = tenant_mut(&mut self.tenants, slot) else { return };
        let was_idle = tenant.queued() == 0;
        if was_idle {
            tenant.begin_backlog(arrived, self.virtual_time);
            if std::mem::replace(&mut tenant.busy_period, self.busy_period) != self.busy_period {
                self.busy.push(slot);
            }
        }
        let first_of_plan = tenant.add(Queued { turn: entry.turn(sequence), entry });
        self.queued += 1;
        self.plan_gains(plan, rows);
        if was_idle {
            self.stand_as_leader(slot);
        }
        if first_of_plan {
            self.stand_in_plans(slot, |other| other == plan);
        }
    }

    /// Gives a tenant another weight, noting it if it is new. Device time that it has taken ahead stays taken.
    pub fn set_weight(&mut self, slot: TenantSlot, weight: Weight) {
        let index = slot.0 as usize;
        if self.tenants.len() <= index {
            self.tenants.resize_with(index + 1, || None);
        }
        match &mut self.tenants[index] {
            Some(tenant) if tenant.weight == weight => {}
            Some(tenant) => {
                tenant.set_weight(weight, self.virtual_time);
                self.restand(slot);
            }
            vacant => {
                self.numbers += 1;
                *vacant = Some(Tenant::new(slot, self.numbers, weight));
            }
        }
    }

    /// Keeps the tenant's rows of `plan` out of batches with other tenants' rows until `until`: a request of it made a batch
    /// fail. A tenant that is not known here has no rows to keep apart.
    pub fn unmix(&mut self, slot: TenantSlot, plan: PlanKey, until: Nanos, now: Nanos) {
        if let Some(tenant) = tenant_mut(&mut self.tenants, slot) {
            tenant.unmix(plan, until, now);
        }
    }

    /// Forgets a tenant and hands back what it had queued. Its batches that run are completed as usual.
    pub fn remove_tenant(&mut self, slot: TenantSlot) -> Vec<E> {
        let Some(mut tenant) = self.tenants.get_mut(slot.0 as usize).and_then(Option::take) else { return Vec::new() };
        self.queued -= tenant.queued();
        if let Some(standing) = tenant.unstand() {
            self.leaders.remove(standing);
        }
        for (plan, entries, standing) in tenant.plans() {
            entries.into_iter().for_each(|rows| self.plan_loses(plan, rows, standing));
            self.predict_backlog(plan);
        }
        let items = tenant.drain().into_iter().map(|entry| entry.item).collect();
        self.settle_if_idle();
        items
    }

    /// Learns what a batch of `rows` rows of `plan` takes, for instance from a trial run when a model is loaded.
    pub fn learn(&mut self, plan: PlanKey, rows: u32, measured: Duration) {
        self.estimator.record(plan, rows, nanos(measured));
        self.relearn_backlog(plan);
    }

    /// V: the start tag of the latest leader.
    pub fn virtual_time(&self) -> Tag {
        self.virtual_time
    }

    /// Counts at this moment.
    pub fn counts(&self) -> FairQueueCounts {
        FairQueueCounts {
            queued: self.queued,
            waiting_tenants: self.leaders.len(),
            running: self.running,
            backlog: Duration::from_nanos(self.queued_nanos.saturating_add(self.running_nanos)),
            virtual_nanos: self.virtual_time.nanos(),
            free_rows: self.free_rows,
        }
    }

    /// What a tenant used; `None` if it never came here.
    pub fn tenant_use(&self, slot: TenantSlot) -> Option<TenantUse> {
        tenant_ref(&self.tenants, slot).map(|tenant| TenantUse {
            queued: tenant.queued(),
            device: Duration::from_nanos(tenant.device_nanos),
            free_rows: tenant.free_rows,
            finish: tenant.finish,
        })
    }

    /// Moves a backlogged tenant to where it now belongs in every ranking.
    fn restand(&mut self, slot: TenantSlot) {
        if tenant_ref(&self.tenants, slot).is_some_and(|tenant| tenant.queued() > 0) {
            self.stand_as_leader(slot);
            self.stand_in_plans(slot, |_| true);
        }
    }

    fn stand_as_leader(&mut self, slot: TenantSlot) {
        if let Some(tenant) = tenant_mut(&mut self.tenants, slot) {
            let (from, to) = tenant.restand();
            self.leaders.place(from, to);
        }
    }

    fn stand_in_plans(&mut self, slot: TenantSlot, wanted: impl Fn(PlanKey) -> bool) {
        let Some(tenant) = tenant_mut(&mut self.tenants, slot) else { return };
        for (plan, from, to) in tenant.restand_in_plans(wanted) {
            if let Some(queue) = self.plans.get_mut(&plan) {
                queue.ranking.place(from, to);
            }
        }
    }

    /// V becomes the largest F once nothing is queued or running. Only tenants that were backlogged since it last did can
    /// be beyond it.
    fn settle_if_idle(&mut self) {
        if self.queued > 0 || self.running > 0 {
            return;
        }
        for slot in self.busy.drain(..) {
            if let Some(tenant) = tenant_ref(&self.tenants, slot) {
                self.virtual_time = self.virtual_time.max(tenant.finish);
            }
        }
        self.busy_period += 1;
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

fn tenant_ref<E>(tenants: &[Option<Tenant<E>>], slot: TenantSlot) -> Option<&Tenant<E>> {
    tenants.get(slot.0 as usize).and_then(Option::as_ref)
}

fn tenant_mut<E>(tenants: &mut [Option<Tenant<E>>], slot: TenantSlot) -> Option<&mut Tenant<E>> {
    tenants.get_mut(slot.0 as usize).and_then(Option::as_mut)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
