//! Forms a batch: the leader is the entry with the smallest start tag, then riders of the same plan one by one, smallest start
//! tag first, then free rows where the bucket would be padded anyway. Called by the shard under its lock.

use insula_core::Nanos;

use super::batch::{Batch, BatchEntry, BatchTicket, Charge, Draft, Formed, Forming};
use super::constants::{DROPS_AT_ONCE, LOOK_AHEAD, RIDE_SLICES};
use super::entry::{PlanKey, TenantSlot};
use super::tenant::{Queued, Tenant};
use super::{FairQueue, InHand, tenant_mut, tenant_ref};

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
            self.predict_backlog(plan);
            self.restand_charged(plan, forming);
        }
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
        let (mut passed, mut held) = (None, 0);
        while !forming.is_exhausted() && held < LOOK_AHEAD {
            let standing = self.leaders.first_after(passed)?;
            let first = tenant_ref(&self.tenants, standing.slot).and_then(Tenant::first)?;
            let (plan, due) = (first.entry.plan, first.entry.arrived + self.max_queue_delay);
            if !self.max_queue_delay.is_zero() && due > now && !self.fills_batch(plan) {
                forming.held_until = Some(forming.held_until.map_or(due, |other| other.min(due)));
                (passed, held) = (Some(standing), held + 1);
            } else if self.claim_leader(standing.slot, plan, forming, now, claim) {
                return Some(plan);
            }
        }
        None
    }

    fn claim_leader<C>(
        &mut self,
        slot: TenantSlot,
        plan: PlanKey,
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) -> bool {
        let Some(Queued { entry, .. }) = self.take_head(slot, plan) else { return false };
        let (rows, max_batch, unmixed) = (entry.rows.count(), entry.rows.max_batch(), entry.unmixed);
        let item = match claim(entry.item) {
            Ok(item) => item,
            Err(dead) => {
                forming.dead.push(dead);
                self.predict_backlog(plan);
                return false;
            }
        };
        let Some(tenant) = tenant_ref(&self.tenants, slot) else { return false };
        let unmixed = unmixed || tenant.is_unmixed(plan, now);
        self.virtual_time = self.virtual_time.max(tenant.finish);
        let curve = self.estimator.curve(plan, max_batch);
        let alone = curve.cost(rows);
        let limit = alone.max(self.slice);
        forming.draft = Some(Draft { plan, tenant: slot, unmixed, max_batch, curve, limit, rows });
        forming.entries.push(BatchEntry { item, tenant: slot, rows, free: false });
        self.charge(slot, plan, rows, alone, forming);
        true
    }

    /// Adds entries, smallest start tag first, as long as they fit and stand near enough to V. Returns the tenants that were
    /// passed over, in their order.
    fn add_riders<C>(
        &mut self,
        plan: PlanKey,
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) -> Vec<TenantSlot> {
        let (mut passed, mut last_passed) = (Vec::new(), None);
        while passed.len() < LOOK_AHEAD
            && !forming.is_exhausted()
            && forming.draft.as_ref().is_some_and(|draft| draft.fits(1))
        {
            // Who rides moves back, so all that were passed stay ahead of whom is still to be looked at.
            let next = self.plans.get(&plan).and_then(|queue| queue.ranking.first_after(last_passed));
            let Some(standing) = next else { break };
            if self.may_ride(standing.slot, plan, forming, now) {
                self.take_along(standing.slot, plan, false, forming, claim);
            } else {
                passed.push(standing.slot);
                last_passed = Some(standing);
            }
        }
        passed
    }

    /// Gives the rows that the bucket would pad anyway to tenants that were passed over, moving no tag.
    fn fill_padding<C>(
        &mut self,
        plan: PlanKey,
        passed: &[TenantSlot],
        forming: &mut Forming<E, C>,
        now: Nanos,
        claim: &mut Claim<'_, E, C>,
    ) {
        let Some(bucket) = forming.draft.as_ref().map(|draft| draft.curve.bucket_rows(draft.rows)) else { return };
        for slot in passed.iter().copied() {
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
            return self.charge(slot, plan, rows, added, forming);
        }
        self.free_rows += u64::from(rows);
        if let Some(tenant) = tenant_mut(&mut self.tenants, slot) {
            tenant.free_rows += u64::from(rows);
        }
    }

    /// Moves the tenant's finish tag by `paid` ns, and the tenant in the ranking of `plan`. The other rankings follow when the
    /// batch is complete: until then nobody reads them.
    fn charge<C>(&mut self, slot: TenantSlot, plan: PlanKey, rows: u32, paid: u64, forming: &mut Forming<E, C>) {
        let Some(tenant) = tenant_mut(&mut self.tenants, slot) else { return };
        let distance = tenant.weight.distance(paid);
        tenant.finish = tenant.finish.plus(distance);
        tenant.share = tenant.share.plus(distance);
        forming.charges.push(Charge { tenant: slot, incarnation: tenant.incarnation, rows, paid });
        self.stand_in_plans(slot, |other| other == plan);
    }

    /// Moves the tenants that the batch charged in the rankings other than that of its `plan`.
    fn restand_charged<C>(&mut self, plan: PlanKey, forming: &Forming<E, C>) {
        for charge in &forming.charges {
            if tenant_ref(&self.tenants, charge.tenant).is_some_and(|tenant| tenant.queued() > 0) {
                self.stand_as_leader(charge.tenant);
                self.stand_in_plans(charge.tenant, |other| other != plan);
            }
        }
    }

    /// Takes the tenant's head of `plan` out of the queue, having noted it as the entry in hand.
    fn take_head(&mut self, slot: TenantSlot, plan: PlanKey) -> Option<Queued<E>> {
        let tenant = tenant_mut(&mut self.tenants, slot)?;
        let sequence = tenant.head(plan)?.turn.sequence;
        self.in_hand = Some(InHand { tenant: slot, plan, sequence });
        let (queued, left) = tenant.take_head(plan)?;
        let idle = if tenant.queued() == 0 { tenant.unstand() } else { None };
        if let Some(standing) = idle {
            self.leaders.remove(standing);
        }
        self.queued -= 1;
        self.plan_loses(plan, queued.entry.rows, left);
        Some(queued)
    }
}

/// Whether the tenant's head may share the batch's launch.
fn may_mix<E>(draft: &Draft, tenant: &Tenant<E>, head: &Queued<E>, now: Nanos) -> bool {
    let same = head.entry.tenant == draft.tenant;
    same || !(draft.unmixed || head.entry.unmixed || tenant.is_unmixed(draft.plan, now))
}
