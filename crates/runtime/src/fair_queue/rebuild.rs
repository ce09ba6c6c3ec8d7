//! Repairs a queue after a panic under the scheduler's lock: what can be derived is derived again from the tenants' FIFOs and
//! tags, or, when that did not help, everything is thrown away. Called by the shard.

use super::entry::TenantSlot;
use super::{FairQueue, tenant_mut};

impl<E> FairQueue<E> {
    /// Derives rankings and counts again from FIFOs and tags. Returns the entry that was being worked on if it was still in
    /// its FIFO: it is taken out, so that it cannot do the same again.
    pub fn rebuild(&mut self) -> Option<E> {
        let in_hand = self.in_hand.take();
        let guilty =
            in_hand.and_then(|hand| tenant_mut(&mut self.tenants, hand.tenant)?.extract(hand.plan, hand.sequence));
        self.leaders.clear();
        self.plans.clear();
        (self.queued, self.queued_nanos) = (0, 0);
        for tenant in self.tenants.iter_mut().flatten() {
            tenant.recount();
            self.queued += tenant.queued();
        }
        let waiting: Vec<_> = self.tenants.iter().flatten().flat_map(|tenant| tenant.plans()).collect();
        for (plan, entries, _) in waiting {
            entries.into_iter().for_each(|rows| self.plan_gains(plan, rows));
        }
        for index in 0..self.tenants.len() {
            // Slots are 32 bit, so the table is no longer than that.
            self.restand(TenantSlot(index as u32));
        }
        guilty.map(|entry| entry.item)
    }

    /// Throws everything away but what was learnt of plans, and hands back what was queued. Batches under way may still be
    /// completed; their tags no longer matter.
    pub fn start_over(&mut self) -> Vec<E> {
        let drained =
            self.tenants.iter_mut().flatten().flat_map(|tenant| tenant.drain()).map(|entry| entry.item).collect();
        self.tenants.clear();
        self.plans.clear();
        self.leaders.clear();
        self.busy.clear();
        self.busy_period += 1;
        self.epoch += 1;
        (self.queued, self.running) = (0, 0);
        (self.queued_nanos, self.running_nanos) = (0, 0);
        self.in_hand = None;
        drained
    }
}
