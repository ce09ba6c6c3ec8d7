//! The fair queue's rules written down as plainly as possible: one list of entries, searched from end to end for every choice.
//! Only the estimator, tags and weights are shared with the real one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use insula_core::Nanos;
use insula_runtime::fair_queue::constants::RIDE_SLICES;
use insula_runtime::fair_queue::{CostCurve, Entry, Estimator, PlanKey, Tag, TenantSlot, Weight};

pub struct Tenant {
    pub weight: Weight,
    pub finish: Tag,
    pub share: Tag,
    pub backlogged: Nanos,
    pub incarnation: u64,
    pub unmixed: BTreeMap<PlanKey, Nanos>,
}

pub struct Reference {
    pub slice: u64,
    pub virtual_time: Tag,
    pub tenants: BTreeMap<TenantSlot, Tenant>,
    pub entries: Vec<Entry<usize>>,
    pub estimator: Estimator,
    pub running: usize,
    pub incarnations: u64,
}

/// A batch of the reference: its entries with whether they are free, and who paid what.
#[derive(Debug)]
pub struct Formed {
    pub plan: PlanKey,
    pub rows: u32,
    pub entries: Vec<(usize, bool)>,
    pub charges: Vec<(TenantSlot, u64, u32, u64)>,
}

impl Reference {
    pub fn new(slice: Duration) -> Self {
        let slice = slice.as_nanos() as u64;
        Reference {
            slice,
            virtual_time: Tag::ZERO,
            tenants: BTreeMap::new(),
            entries: Vec::new(),
            estimator: Estimator::new(slice),
            running: 0,
            incarnations: 0,
        }
    }

    pub fn push(&mut self, entry: Entry<usize>) {
        self.set_weight(entry.tenant, entry.weight);
        let was_idle = self.entries.iter().all(|other| other.tenant != entry.tenant);
        let tenant = self.tenants.get_mut(&entry.tenant).unwrap();
        if was_idle {
            tenant.finish = tenant.finish.max(self.virtual_time);
            tenant.backlogged = entry.arrived;
        }
        self.entries.push(entry);
    }

    pub fn set_weight(&mut self, slot: TenantSlot, weight: Weight) {
        self.incarnations += 1;
        let (incarnation, virtual_time) = (self.incarnations, self.virtual_time);
        let tenant = self.tenants.entry(slot).or_insert_with(|| Tenant {
            weight,
            finish: Tag::ZERO,
            share: Tag::ZERO,
            backlogged: Nanos(0),
            incarnation,
            unmixed: BTreeMap::new(),
        });
        if tenant.weight != weight {
            let ahead = tenant.finish.minus(virtual_time);
            if ahead > Tag::ZERO {
                tenant.finish = virtual_time.plus(tenant.weight.convert(ahead, weight));
            }
            tenant.share = tenant.weight.convert(tenant.share, weight);
            tenant.weight = weight;
        }
    }

    pub fn remove(&mut self, slot: TenantSlot) -> Vec<usize> {
        let items = self.entries.iter().filter(|entry| entry.tenant == slot).map(|entry| entry.item).collect();
        self.entries.retain(|entry| entry.tenant != slot);
        if self.tenants.remove(&slot).is_some() {
            self.settle_if_idle();
        }
        items
    }

    pub fn unmix(&mut self, slot: TenantSlot, plan: PlanKey, until: Nanos) {
        if let Some(tenant) = self.tenants.get_mut(&slot) {
            let end = tenant.unmixed.entry(plan).or_insert(until);
            *end = until.max(*end);
        }
    }

    pub fn form(&mut self, now: Nanos, is_dead: impl Fn(usize) -> bool) -> (Option<Formed>, Vec<usize>) {
        let mut dead = Vec::new();
        let leader = loop {
            let Some(slot) = self.first_tenant(|_| true, &[]) else {
                self.settle_if_idle();
                return (None, dead);
            };
            let first = self.head(slot, |_| true).unwrap();
            let entry = self.entries.remove(first);
            if !is_dead(entry.item) {
                break entry;
            }
            dead.push(entry.item);
        };
        self.virtual_time = self.virtual_time.max(self.tenants[&leader.tenant].finish);
        let curve = self.estimator.curve(leader.plan, leader.rows.max_batch());
        let alone = curve.cost(leader.rows.count());
        let mut formed = Formed {
            plan: leader.plan,
            rows: leader.rows.count(),
            entries: vec![(leader.item, false)],
            charges: vec![],
        };
        self.charge(leader.tenant, leader.rows.count(), alone, &mut formed);
        let passed = self.ride(&leader, &curve, alone.max(self.slice), now, &is_dead, &mut formed, &mut dead);
        self.fill(&leader, &curve, &passed, now, &is_dead, &mut formed, &mut dead);
        self.running += 1;
        (Some(formed), dead)
    }

    #[expect(clippy::too_many_arguments, reason = "all that one rule of the design speaks of")]
    fn ride(
        &mut self,
        leader: &Entry<usize>,
        curve: &CostCurve,
        limit: u64,
        now: Nanos,
        is_dead: &impl Fn(usize) -> bool,
        formed: &mut Formed,
        dead: &mut Vec<usize>,
    ) -> Vec<TenantSlot> {
        let mut passed = Vec::new();
        let fits = |rows: u32| rows <= leader.rows.max_batch() && curve.cost(rows) <= limit;
        while fits(formed.rows + 1) {
            let Some(slot) = self.first_tenant(|entry| entry.plan == leader.plan, &passed) else { break };
            let index = self.head(slot, |entry| entry.plan == leader.plan).unwrap();
            let (entry, tenant) = (&self.entries[index], &self.tenants[&slot]);
            let reach = self.virtual_time.plus(tenant.weight.distance(RIDE_SLICES * self.slice));
            let near = slot == leader.tenant || tenant.finish <= reach;
            if !near || !fits(formed.rows + entry.rows.count()) || !self.may_mix(leader, entry, now) {
                passed.push(slot);
                continue;
            }
            let entry = self.entries.remove(index);
            if is_dead(entry.item) {
                dead.push(entry.item);
                continue;
            }
            let added = curve.cost(formed.rows + entry.rows.count()) - curve.cost(formed.rows);
            formed.rows += entry.rows.count();
            formed.entries.push((entry.item, false));
            self.charge(slot, entry.rows.count(), added, formed);
        }
        passed
    }

    #[expect(clippy::too_many_arguments, reason = "all that one rule of the design speaks of")]
    fn fill(
        &mut self,
        leader: &Entry<usize>,
        curve: &CostCurve,
        passed: &[TenantSlot],
        now: Nanos,
        is_dead: &impl Fn(usize) -> bool,
        formed: &mut Formed,
        dead: &mut Vec<usize>,
    ) {
        let bucket = curve.bucket_rows(formed.rows);
        for slot in passed {
            while let Some(index) = self.head(*slot, |entry| entry.plan == leader.plan) {
                let entry = &self.entries[index];
                if formed.rows + entry.rows.count() > bucket || !self.may_mix(leader, entry, now) {
                    break;
                }
                let entry = self.entries.remove(index);
                if is_dead(entry.item) {
                    dead.push(entry.item);
                    continue;
                }
                formed.rows += entry.rows.count();
                formed.entries.push((entry.item, true));
            }
        }
    }

    fn may_mix(&self, leader: &Entry<usize>, entry: &Entry<usize>, now: Nanos) -> bool {
        let apart = |entry: &Entry<usize>| {
            entry.unmixed || self.tenants[&entry.tenant].unmixed.get(&entry.plan).is_some_and(|until| *until > now)
        };
        leader.tenant == entry.tenant || !(apart(leader) || apart(entry))
    }

    /// The tenant that stands first among those with an entry that `counts`, but for those in `without`.
    fn first_tenant(&self, counts: impl Fn(&Entry<usize>) -> bool, without: &[TenantSlot]) -> Option<TenantSlot> {
        let slots = self.entries.iter().filter(|entry| counts(entry)).map(|entry| entry.tenant);
        slots.filter(|slot| !without.contains(slot)).min_by_key(|slot| {
            let tenant = &self.tenants[slot];
            (tenant.finish, Reverse(tenant.backlogged), tenant.share, *slot)
        })
    }

    /// The tenant's first entry of those that `counts`. Entries lie in the order of coming.
    fn head(&self, slot: TenantSlot, counts: impl Fn(&Entry<usize>) -> bool) -> Option<usize> {
        let own = self.entries.iter().enumerate().filter(|(_, entry)| entry.tenant == slot && counts(entry));
        own.min_by_key(|(index, entry)| (entry.priority.wrapping_sub(1), entry.arrived, *index)).map(|(index, _)| index)
    }

    fn charge(&mut self, slot: TenantSlot, rows: u32, paid: u64, formed: &mut Formed) {
        let tenant = self.tenants.get_mut(&slot).unwrap();
        tenant.finish = tenant.finish.plus(tenant.weight.distance(paid));
        tenant.share = tenant.share.plus(tenant.weight.distance(paid));
        formed.charges.push((slot, tenant.incarnation, rows, paid));
    }

    pub fn complete(&mut self, formed: &Formed, measured: u64) {
        self.running -= 1;
        self.estimator.record(formed.plan, formed.rows, measured);
        let mut bills: BTreeMap<(TenantSlot, u64), (u64, u64)> = BTreeMap::new();
        for (slot, incarnation, rows, paid) in &formed.charges {
            let bill = bills.entry((*slot, *incarnation)).or_default();
            (bill.0, bill.1) = (bill.0 + u64::from(*rows), bill.1 + paid);
        }
        let all: u64 = bills.values().map(|(rows, _)| rows).sum();
        let mut rows_before = 0;
        for ((slot, incarnation), (rows, paid)) in bills {
            let until = |rows: u64| (u128::from(measured) * u128::from(rows) / u128::from(all)) as u64;
            let bears = until(rows_before + rows) - until(rows_before);
            rows_before += rows;
            let Some(tenant) = self.tenants.get_mut(&slot).filter(|tenant| tenant.incarnation == incarnation) else {
                continue;
            };
            if bears >= paid {
                tenant.finish = tenant.finish.plus(tenant.weight.distance(bears - paid));
                tenant.share = tenant.share.plus(tenant.weight.distance(bears - paid));
            } else {
                let less = tenant.weight.distance(paid - bears);
                let floor = tenant.finish.min(self.virtual_time);
                tenant.finish = tenant.finish.minus(less).max(floor);
                tenant.share = tenant.share.minus(less);
            }
        }
        self.settle_if_idle();
    }

    fn settle_if_idle(&mut self) {
        if self.entries.is_empty() && self.running == 0 {
            let furthest = self.tenants.values().map(|tenant| tenant.finish).max();
            self.virtual_time = furthest.unwrap_or_default().max(self.virtual_time);
        }
    }
}
