//! What the router and the tenants' owners change about a shard: weights, tenants that leave, tenants kept apart, and what is
//! known of a plan's cost. Rare, so it waits for the scheduler's lock.

use std::time::Duration;

use insula_core::Nanos;

use super::{Parker, Shard, ShardEntry, fail_all};
use crate::fair_queue::{FairQueue, PlanKey, TenantSlot, Weight};

impl<E: ShardEntry, K: Parker> Shard<E, K> {
    /// Gives a tenant another weight at once, without waiting for its next entry.
    pub fn set_weight(&self, tenant: TenantSlot, weight: Weight, now: Nanos) {
        self.change(now, |queue| queue.set_weight(tenant, weight));
    }

    /// Forgets a tenant and hands back what it had waiting, for the caller to answer. Nothing of it may be pushed any more.
    pub fn remove_tenant(&self, tenant: TenantSlot, now: Nanos) -> Vec<E> {
        self.change(now, |queue| queue.remove_tenant(tenant)).unwrap_or_default()
    }

    /// Keeps a tenant's rows of `plan` out of batches with others' until `until`.
    pub fn unmix(&self, tenant: TenantSlot, plan: PlanKey, until: Nanos, now: Nanos) {
        self.change(now, |queue| queue.unmix(tenant, plan, until, now));
    }

    /// Learns what a batch of `rows` rows of `plan` takes, from a trial run.
    pub fn learn(&self, plan: PlanKey, rows: u32, measured: Duration, now: Nanos) {
        self.change(now, |queue| queue.learn(plan, rows, measured));
    }

    /// Drains the intake, then lets `work` change the queue; `None` if it panicked.
    pub(super) fn change<T>(&self, now: Nanos, work: impl FnOnce(&mut FairQueue<E>) -> T) -> Option<T> {
        let mut failed = Vec::new();
        let (result, ready) = {
            let mut scheduler = self.scheduler.lock();
            scheduler.admit(&self.intake, now, &mut failed);
            let result = scheduler.attend(now, &mut failed, work);
            self.published.count_failed(failed.len());
            (result, scheduler.publish(&self.published))
        };
        fail_all(failed);
        if ready {
            self.wake_one();
        }
        result
    }
}
