//! Forms a batch: the leader is the entry with the smallest start tag, then riders of the same plan one by one, smallest start
//! tag first, then free rows where the bucket would be padded anyway. Called by the shard under its lock.

use insula_core::Nanos;
use smallvec::SmallVec;

use super::batch::{Batch, BatchEntry, BatchTicket, Charge, Draft, Formed, Forming};
use super::constants::{DROPS_AT_ONCE, LOOK_AHEAD, RIDE_SLICES};
use super::entry::{PlanKey, TenantSlot};
use super::tag_heap::Item;
use super::tenant::{Queued, Tenant};
use super::{FairQueue, InHand, is_current, tenant_mut, tenant_ref};

/// Takes an entry for a batch, or gives it back if its caller no longer wants it.
type Claim<'a, E, C> = dyn FnMut(E) -> Result<C, E> + 'a;

impl<E, C> Forming<E, C> {
    /// Whether as many dead entries were dropped as may be at once.
    fn is_exhausted(&self) -> bool {
        self.dead.len() >= DROPS_AT_ONCE
    }
}

impl Draft {
    /// Whether `rows` more rows fit the largest batch and its time.
    fn fits(&self, rows: u32) -> bool {
        self.rows.checked_add(rows).is_some_and(|rows| rows <= self.max_batch && self.curve.cost(rows) <= self.limit)
    }
}

impl<E> FairQueue<E> {
    /// Forms the next batch. `claim` is asked for each entry that is to go into it: one that it gives back, because it was
    /// cancelled or its time has passed, leaves the queue at no charge.
    pub fn form_batch<C>(&mut self, now: Nanos, mut claim: impl FnMut(E) -> Result<C, E>) -> Formed<E, C> {
        let mut forming = Forming::default();
        self.form_into(&mut forming, now, &mut claim);
        self.seal(forming)
    }

    /// The part of [`FairQueue::form_batch`] that can be cut short by a panic of `claim`. What is in `forming` then stays
    /// good: after [`FairQueue::rebuild`], [`FairQueue::seal`] makes a batch of it.
    pub fn form_into<C>(&mut self, forming: &mut Forming<E, C>, now: Nanos, claim: &mut Claim<'_, E, C>) {
        if let Some(plan) = self.choose_leader(forming, now, claim) {
            let passed = self.add_riders(plan, forming, now, claim);
            self.fill_padding(plan, &passed, forming, now, claim);
            for item in passed {
                self.put_back(plan, item);
            }
        }
        self.restand_moved(forming);
        self.in_hand = None;
    }

    /// Ends the forming of a batch, which counts as running from now on.
    pub fn seal<C>(&mut self, forming: Forming<E, C>) -> Formed<E, C> {
        let more = forming.draft.is_none() && forming.is_exhausted();
        let Forming { draft, entries, charges, dead, held_until } = forming;
        let Some(Draft { plan, curve, rows, .. }) = draft else {
            self.settle_if_idle();
            return Formed { batch: None, dead, held_until, more };
        };
        let predicted = curve.cost(rows);
        self.running += 1;
        self.running_nanos = self.running_nanos.saturating_add(predicted);
        let ticket = BatchTicket { epoch: self.epoch, plan, rows, predicted, charges };
        let (bucket_rows, predicted) = (curve.bucket_rows(rows), std::time::Duration::from_nanos(predicted));
        let batch = Batch { plan, rows, bucket_rows, predicted, entries, ticket };
        Formed { batch: Some(batch), dead, held_until: None, more: false }
    }

    /// Claims the first entry of the tenant with the smallest start tag, which becomes V. Tenants whose entries are held back
    /// for more rows are passed over.
    fn choose_leader<C>(
        &mut self,
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) -> Option<PlanKey> {
        let mut held: SmallVec<[Item; 4]> = SmallVec::new();
        let mut plan = None;
        while plan.is_none() && !forming.is_exhausted() && held.len() < LOOK_AHEAD {
            let tenants = &self.tenants;
            let Some(item) = self.leaders.pop(|item| is_current(tenants, item)) else { break };
            let slot = item.standing.slot;
            let Some(first) = tenant_ref(tenants, slot).and_then(Tenant::first) else { continue };
            let (wanted, due) = (first.entry.plan, first.entry.arrived + self.max_queue_delay);
            if !self.max_queue_delay.is_zero() && due > now && !self.fills_batch(wanted) {
                forming.held_until = Some(forming.held_until.map_or(due, |other| other.min(due)));
                held.push(item);
                continue;
            }
            plan = self.claim_leader(slot, wanted, forming, now, claim);
            if plan.is_none() {
                self.stand_as_leader_if_waiting(slot);
            }
        }
        for item in held {
            self.stand_as_leader_if_waiting(item.standing.slot);
        }
        plan
    }

    fn claim_leader<C>(
        &mut self,
        slot: TenantSlot,
        plan: PlanKey,
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) -> Option<PlanKey> {
        let Queued { entry, .. } = self.take_head(slot, plan)?;
        let (rows, max_batch, unmixed) = (entry.rows.count(), entry.rows.max_batch(), entry.unmixed);
        let item = match claim(entry.item) {
            Ok(item) => item,
            Err(dead) => {
                forming.dead.push(dead);
                return None;
            }
        };
        let tenant = tenant_ref(&self.tenants, slot)?;
        let unmixed = unmixed || tenant.is_unmixed(plan, now);
        self.virtual_time = self.virtual_time.max(tenant.finish);
        let curve = self.estimator.curve(plan, max_batch);
        let alone = curve.cost(rows);
        let limit = alone.max(self.slice);
        forming.draft = Some(Draft { plan, tenant: slot, unmixed, max_batch, curve, limit, rows });
        forming.entries.push(BatchEntry { item, tenant: slot, rows, free: false });
        self.charge(slot, rows, alone, forming);
        self.stand_in_plan(slot, plan);
        Some(plan)
    }

    /// Adds entries, smallest start tag first, as long as they fit and stand near enough to V. Returns the tenants that were
    /// passed over, in their order.
    fn add_riders<C>(
        &mut self,
        plan: PlanKey,
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) -> Vec<Item> {
        let mut passed = Vec::new();
        while passed.len() < LOOK_AHEAD
            && !forming.is_exhausted()
            && forming.draft.as_ref().is_some_and(|draft| draft.fits(1))
        {
            let Some(item) = self.pop_rider(plan) else { break };
            if self.may_ride(item.standing.slot, plan, forming, now) {
                self.take_along(item.standing.slot, plan, false, forming, claim);
                self.stand_in_plan(item.standing.slot, plan);
            } else {
                passed.push(item);
            }
        }
        passed
    }

    /// Gives the rows that the bucket would pad anyway to tenants that were passed over, moving no tag.
    fn fill_padding<C>(
        &mut self,
        plan: PlanKey,
        passed: &[Item],
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) {
        let Some(bucket) = forming.draft.as_ref().map(|draft| draft.curve.bucket_rows(draft.rows)) else { return };
        for slot in passed.iter().map(|item| item.standing.slot) {
            while self.may_fill(slot, plan, bucket, forming, now) {
                self.take_along(slot, plan, true, forming, claim);
            }
        }
    }

    /// Whether the tenant's head fits the batch and its start tag is near enough to V.
    fn may_ride<C>(&self, slot: TenantSlot, plan: PlanKey, forming: &Forming<E, C>, now: Nanos) -> bool {
        let (Some(draft), Some(tenant)) = (&forming.draft, tenant_ref(&self.tenants, slot)) else { return false };
        let Some(head) = tenant.head(plan) else { return false };
        let reach = self.virtual_time.plus(tenant.weight.distance(RIDE_SLICES.saturating_mul(self.slice)));
        draft.fits(head.entry.rows.count())
            && may_mix(draft, tenant, head, now)
            && (slot == draft.tenant || tenant.finish <= reach)
    }

    /// Whether the tenant's head fits what is left of `bucket` rows.
    fn may_fill<C>(&self, slot: TenantSlot, plan: PlanKey, bucket: u32, forming: &Forming<E, C>, now: Nanos) -> bool {
        let (Some(draft), Some(tenant)) = (&forming.draft, tenant_ref(&self.tenants, slot)) else { return false };
        let Some(head) = tenant.head(plan) else { return false };
        let room = bucket.saturating_sub(draft.rows);
        !forming.is_exhausted() && head.entry.rows.count() <= room && may_mix(draft, tenant, head, now)
    }

    /// Takes the tenant's head into the batch, as a rider that pays what it adds to the estimate or as a free one.
    fn take_along<C>(
        &mut self,
        slot: TenantSlot,
        plan: PlanKey,
        free: bool,
        forming: &mut Forming<E, C>,
        claim: &mut Claim<'_, E, C>,
    ) {
        let Some(Queued { entry, .. }) = self.take_head(slot, plan) else { return };
        let rows = entry.rows.count();
        let item = match claim(entry.item) {
            Ok(item) => item,
            Err(dead) => return forming.dead.push(dead),
        };
        let Some(draft) = &mut forming.draft else { return };
        let before = draft.curve.cost(draft.rows);
        draft.rows += rows;
        let added = draft.curve.cost(draft.rows) - before;
        forming.entries.push(BatchEntry { item, tenant: slot, rows, free });
        if !free {
            return self.charge(slot, rows, added, forming);
        }
        self.free_rows += u64::from(rows);
        if let Some(tenant) = tenant_mut(&mut self.tenants, slot) {
            tenant.free_rows += u64::from(rows);
        }
    }

    /// Moves the tenant's finish tag by `paid` ns. The heaps but that of the batch's own plan follow when the batch is
    /// complete: until then nobody reads them.
    fn charge<C>(&mut self, slot: TenantSlot, rows: u32, paid: u64, forming: &mut Forming<E, C>) {
        let Some(tenant) = tenant_mut(&mut self.tenants, slot) else { return };
        let distance = tenant.weight.distance(paid);
        tenant.finish = tenant.finish.plus(distance);
        tenant.share = tenant.share.plus(distance);
        tenant.moved = true;
        forming.charges.push(Charge { tenant: slot, incarnation: tenant.incarnation, rows, paid });
    }

    /// Puts the tenants that the batch charged where they belong in the heaps.
    fn restand_moved<C>(&mut self, forming: &Forming<E, C>) {
        let Some(plan) = forming.draft.as_ref().map(|draft| draft.plan) else { return };
        for charge in &forming.charges {
            let moved =
                tenant_mut(&mut self.tenants, charge.tenant).is_some_and(|tenant| std::mem::take(&mut tenant.moved));
            if moved {
                self.restand(charge.tenant, Some(plan));
            }
        }
    }

    fn stand_as_leader_if_waiting(&mut self, slot: TenantSlot) {
        if tenant_ref(&self.tenants, slot).is_some_and(|tenant| tenant.queued() > 0) {
            self.stand_as_leader(slot);
        }
    }

    /// Takes the tenant's head of `plan` out of the queue, having noted it as the entry in hand.
    fn take_head(&mut self, slot: TenantSlot, plan: PlanKey) -> Option<Queued<E>> {
        let tenant = tenant_mut(&mut self.tenants, slot)?;
        let sequence = tenant.head(plan)?.turn.sequence;
        self.in_hand = Some(InHand { tenant: slot, plan, sequence });
        let (queued, was_last) = tenant.take_head(plan)?;
        let left_idle = tenant.queued() == 0;
        self.queued -= 1;
        self.waiting -= usize::from(left_idle);
        self.plan_loses(plan, u64::from(queued.entry.rows.count()), was_last);
        Some(queued)
    }
}

/// Whether the tenant's head may share the batch's launch.
fn may_mix<E>(draft: &Draft, tenant: &Tenant<E>, head: &Queued<E>, now: Nanos) -> bool {
    let same = head.entry.tenant == draft.tenant;
    same || !(draft.unmixed || head.entry.unmixed || tenant.is_unmixed(draft.plan, now))
}
