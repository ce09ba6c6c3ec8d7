//! What a fair queue knows of one plan while entries for it wait: the tenants that have some, and the device time they are
//! predicted to take. The entries themselves lie with their tenants.

use super::FairQueue;
use super::entry::{PlanKey, Rows};
use super::estimate::CostCurve;
use super::ranking::{Ranking, Standing};

/// The entries of all tenants for one plan, from outside.
#[derive(Debug)]
pub(super) struct PlanQueue {
    pub(super) ranking: Ranking,
    entries: usize,
    rows: u64,
    curve: CostCurve,
    max_batch: u32,
    backlog: u64,
}

impl PlanQueue {
    /// Brings its backlog up to date; `total` is that of all plans before, the result after.
    fn predict(&mut self, total: u64, slice: u64) -> u64 {
        let before = std::mem::replace(&mut self.backlog, self.curve.backlog(self.rows, slice));
        // Wrapping, so that the sum over all plans stays exact even if a single prediction saturates.
        total.wrapping_sub(before).wrapping_add(self.backlog)
    }
}

impl<E> FairQueue<E> {
    /// Notes a new entry of `rows` for `plan`.
    pub(super) fn plan_gains(&mut self, plan: PlanKey, rows: Rows) {
        let max_batch = rows.max_batch();
        let estimator = &self.estimator;
        let queue = self.plans.entry(plan).or_insert_with(|| {
            let curve = estimator.curve(plan, max_batch);
            PlanQueue { ranking: Ranking::default(), entries: 0, rows: 0, curve, max_batch, backlog: 0 }
        });
        if queue.max_batch != max_batch {
            (queue.max_batch, queue.curve) = (max_batch, estimator.curve(plan, max_batch));
        }
        queue.entries += 1;
        queue.rows += u64::from(rows.count());
        self.queued_nanos = queue.predict(self.queued_nanos, self.slice);
    }

    /// Notes that an entry of `rows` left `plan`, and its tenant if it stood at `left`. The backlog is left to
    /// [`FairQueue::predict_backlog`].
    pub(super) fn plan_loses(&mut self, plan: PlanKey, rows: Rows, left: Option<Standing>) {
        let Some(queue) = self.plans.get_mut(&plan) else { return };
        queue.entries -= 1;
        queue.rows -= u64::from(rows.count());
        if let Some(standing) = left {
            queue.ranking.remove(standing);
        }
    }

    /// Predicts the backlog of `plan` again after entries have left it, and forgets the plan if none is left.
    pub(super) fn predict_backlog(&mut self, plan: PlanKey) {
        let Some(queue) = self.plans.get_mut(&plan) else { return };
        self.queued_nanos = queue.predict(self.queued_nanos, self.slice);
        if queue.entries == 0 {
            self.queued_nanos = self.queued_nanos.wrapping_sub(queue.backlog);
            self.plans.remove(&plan);
        }
    }

    /// Predicts the backlog of `plan` with what has been learnt since.
    pub(super) fn relearn_backlog(&mut self, plan: PlanKey) {
        if let Some(queue) = self.plans.get_mut(&plan) {
            queue.curve = self.estimator.curve(plan, queue.max_batch);
            self.queued_nanos = queue.predict(self.queued_nanos, self.slice);
        }
    }

    /// Whether what waits for `plan` fills a batch.
    pub(super) fn fills_batch(&self, plan: PlanKey) -> bool {
        self.plans.get(&plan).is_some_and(|queue| queue.rows >= u64::from(queue.curve.rows_within(self.slice)))
    }
}
