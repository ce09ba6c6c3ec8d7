//! What a fair queue knows of one plan while entries for it wait: the tenants that have some, and the device time they are
//! predicted to take. The entries themselves lie with their tenants.

use super::entry::{PlanKey, Rows};
use super::estimate::CostCurve;
use super::tag_heap::{Item, TagHeap};
use super::{FairQueue, is_current_in};

/// The entries of all tenants for one plan, from outside.
#[derive(Debug)]
pub(super) struct PlanQueue {
    heap: TagHeap,
    /// Tenants with entries for the plan.
    members: usize,
    rows: u64,
    curve: CostCurve,
    max_batch: u32,
    backlog: u64,
}

impl PlanQueue {
    pub(super) fn push(&mut self, item: Item, is_current: impl Fn(&Item) -> bool) {
        self.heap.push(item, self.members, is_current);
    }

    /// Whether more rows wait than a batch of at most `limit` ns holds.
    fn fills_batch(&self, limit: u64) -> bool {
        self.rows >= u64::from(self.curve.rows_within(limit))
    }
}

impl<E> FairQueue<E> {
    /// Notes a new entry of `rows` for `plan`, the tenant's first for it or not.
    pub(super) fn plan_gains(&mut self, plan: PlanKey, rows: Rows, first_of_tenant: bool) {
        let (slice, max_batch) = (self.slice, rows.max_batch());
        let estimator = &self.estimator;
        let queue = self.plans.entry(plan).or_insert_with(|| {
            let curve = estimator.curve(plan, max_batch);
            PlanQueue { heap: TagHeap::default(), members: 0, rows: 0, curve, max_batch, backlog: 0 }
        });
        if queue.max_batch != max_batch {
            (queue.max_batch, queue.curve) = (max_batch, estimator.curve(plan, max_batch));
        }
        queue.members += usize::from(first_of_tenant);
        queue.rows += u64::from(rows.count());
        self.queued_nanos = predict(queue, self.queued_nanos, slice);
    }

    /// Notes that `rows` rows of a tenant left `plan`, its last ones or not.
    pub(super) fn plan_loses(&mut self, plan: PlanKey, rows: u64, last_of_tenant: bool) {
        let Some(queue) = self.plans.get_mut(&plan) else { return };
        queue.rows = queue.rows.saturating_sub(rows);
        queue.members -= usize::from(last_of_tenant);
        self.queued_nanos = predict(queue, self.queued_nanos, self.slice);
        if queue.members == 0 {
            self.queued_nanos = self.queued_nanos.wrapping_sub(queue.backlog);
            self.plans.remove(&plan);
        }
    }

    /// Predicts the backlog of `plan` from what has been learnt since.
    pub(super) fn refresh_backlog(&mut self, plan: PlanKey) {
        let Some(queue) = self.plans.get_mut(&plan) else { return };
        queue.curve = self.estimator.curve(plan, queue.max_batch);
        self.queued_nanos = predict(queue, self.queued_nanos, self.slice);
    }

    /// The tenant that stands first among those with entries for `plan`, taken out of its heap.
    pub(super) fn pop_rider(&mut self, plan: PlanKey) -> Option<Item> {
        let tenants = &self.tenants;
        self.plans.get_mut(&plan)?.heap.pop(|item| is_current_in(tenants, plan, item))
    }

    /// Puts an item that is still current back into the heap of `plan`.
    pub(super) fn put_back(&mut self, plan: PlanKey, item: Item) {
        let tenants = &self.tenants;
        if is_current_in(tenants, plan, &item)
            && let Some(queue) = self.plans.get_mut(&plan)
        {
            queue.push(item, |item| is_current_in(tenants, plan, item));
        }
    }

    /// Whether what waits for `plan` fills a batch.
    pub(super) fn fills_batch(&self, plan: PlanKey) -> bool {
        self.plans.get(&plan).is_some_and(|queue| queue.fills_batch(self.slice))
    }
}

/// Brings the backlog of `queue` up to date; `total` is that of all plans before, the result after.
fn predict(queue: &mut PlanQueue, total: u64, slice: u64) -> u64 {
    let before = std::mem::replace(&mut queue.backlog, queue.curve.backlog(queue.rows, slice));
    // Wrapping, so that the sum over all plans stays exact even if a single prediction saturates.
    total.wrapping_sub(before).wrapping_add(queue.backlog)
}
