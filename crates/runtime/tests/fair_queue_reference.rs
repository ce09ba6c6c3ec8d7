//! The fair queue against its plain reference: over random histories both form the same batches, charge the same tags and
//! drop the same entries. What differs between the two is heaps, stamps and counts, and that is what this tests.

#[cfg(test)]
#[path = "fair_queue_reference/reference.rs"]
mod reference;

use std::time::Duration;

use insula_core::Nanos;
use insula_runtime::fair_queue::{
    Batch, BatchTicket, Entry, FairQueue, FairQueueSettings, PlanKey, Rows, Settlement, TenantSlot, Weight,
};
use proptest::collection::vec;
use proptest::prelude::*;
use reference::{Formed, Reference};

const SLICE: Duration = Duration::from_millis(5);
const MS: u64 = 1_000_000;

#[derive(Debug, Clone)]
enum Step {
    Push {
        tenant: u32,
        plan: u64,
        rows: usize,
        priority: u32,
        dead: bool,
        unmixed: bool,
    },
    Form,
    /// Ends one of the batches in flight.
    Complete {
        which: usize,
        measured: u64,
    },
    Weigh {
        tenant: u32,
        weight: f64,
    },
    Unmix {
        tenant: u32,
        plan: u64,
        time: u64,
    },
    Remove {
        tenant: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let flag = |weight| proptest::bool::weighted(weight);
    let push = (0u32..6, 0u64..3, 1usize..5, 0u32..3, flag(0.15), flag(0.1)).prop_map(
        |(tenant, plan, rows, priority, dead, unmixed)| Step::Push { tenant, plan, rows, priority, dead, unmixed },
    );
    prop_oneof![
        40 => push,
        12 => Just(Step::Form),
        12 => (0usize..4, 1u64..20 * MS).prop_map(|(which, measured)| Step::Complete { which, measured }),
        2 => (0u32..6, 0.1f64..10.0).prop_map(|(tenant, weight)| Step::Weigh { tenant, weight }),
        1 => (0u32..6, 0u64..3, 1u64..40).prop_map(|(tenant, plan, time)| Step::Unmix { tenant, plan, time }),
        1 => (0u32..6).prop_map(|tenant| Step::Remove { tenant }),
    ]
}

struct Both {
    queue: FairQueue<usize>,
    reference: Reference,
    weights: [f64; 6],
    now: u64,
    dead: Vec<bool>,
    flights: Vec<(BatchTicket, Formed)>,
}

impl Both {
    fn new() -> Both {
        let settings = FairQueueSettings { slice: SLICE, max_queue_delay: Duration::ZERO };
        let (queue, reference) = (FairQueue::new(settings), Reference::new(SLICE));
        Both { queue, reference, weights: [1.0; 6], now: 0, dead: Vec::new(), flights: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
        // Many steps share a time, so that ties are common.
        self.now += u64::from(matches!(step, Step::Form));
        match *step {
            Step::Push { tenant, plan, rows, priority, dead, unmixed } => {
                let entry = Entry {
                    tenant: TenantSlot(tenant),
                    weight: Weight::new(self.weights[tenant as usize]),
                    plan: PlanKey(plan),
                    rows: Rows::new(rows, 8).expect("fewer than eight rows are drawn"),
                    priority,
                    arrived: Nanos(self.now),
                    unmixed,
                    item: self.dead.len(),
                };
                self.dead.push(dead);
                self.queue.push(entry.clone());
                self.reference.push(entry);
            }
            Step::Form => self.form(),
            Step::Complete { which, measured } => {
                if !self.flights.is_empty() {
                    let (ticket, formed) = self.flights.remove(which % self.flights.len());
                    self.queue.complete(ticket, Settlement::Measured(Duration::from_nanos(measured)));
                    self.reference.complete(&formed, measured);
                }
            }
            Step::Weigh { tenant, weight } => {
                self.weights[tenant as usize] = weight;
                self.queue.set_weight(TenantSlot(tenant), Weight::new(weight));
                self.reference.set_weight(TenantSlot(tenant), Weight::new(weight));
            }
            Step::Unmix { tenant, plan, time } => {
                let (slot, plan, until) = (TenantSlot(tenant), PlanKey(plan), Nanos(self.now + time));
                self.queue.unmix(slot, plan, until, Nanos(self.now));
                self.reference.unmix(slot, plan, until);
            }
            Step::Remove { tenant } => {
                let mut removed = self.queue.remove_tenant(TenantSlot(tenant));
                removed.sort_unstable();
                assert_eq!(removed, self.reference.remove(TenantSlot(tenant)));
            }
        }
        self.compare();
    }

    fn form(&mut self) {
        let dead = &self.dead;
        let (mut batch, mut dropped) = (None, Vec::new());
        loop {
            let formed = self.queue.form_batch(Nanos(self.now), |item| if dead[item] { Err(item) } else { Ok(item) });
            dropped.extend(formed.dead);
            batch = batch.or(formed.batch);
            if !formed.more {
                break;
            }
        }
        let (expected, expected_dropped) = self.reference.form(Nanos(self.now), |item| dead[item]);
        assert_eq!(dropped, expected_dropped);
        let entries = |batch: &Batch<usize>| batch.entries.iter().map(|entry| (entry.item, entry.free)).collect();
        let found: Option<Vec<(usize, bool)>> = batch.as_ref().map(entries);
        assert_eq!(found.as_ref(), expected.as_ref().map(|formed| &formed.entries));
        if let (Some(batch), Some(formed)) = (batch, expected) {
            self.flights.push((batch.ticket, formed));
        }
    }

    fn compare(&self) {
        assert_eq!(self.queue.virtual_time(), self.reference.virtual_time);
        let counts = self.queue.counts();
        assert_eq!((counts.queued, counts.running), (self.reference.entries.len(), self.reference.running));
        let waiting = (0..6).filter(|tenant| self.reference.entries.iter().any(|entry| entry.tenant.0 == *tenant));
        assert_eq!(counts.waiting_tenants, waiting.count());
        for tenant in (0..6).map(TenantSlot) {
            let finish = self.queue.tenant_use(tenant).map(|known| known.finish);
            assert_eq!(finish, self.reference.tenants.get(&tenant).map(|known| known.finish), "the tag of {tenant:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_fair_queue_does_what_the_plain_rules_say(steps in vec(step(), 1..300)) {
        let mut both = Both::new();
        for step in &steps {
            both.take(step);
        }
        // What is left comes out in the same order too.
        while !both.reference.entries.is_empty() {
            both.take(&Step::Form);
            both.take(&Step::Complete { which: 0, measured: MS });
        }
    }

    #[test]
    fn a_rebuilt_queue_goes_on_as_if_nothing_had_happened(steps in vec(step(), 1..200), every in 1usize..20) {
        let mut both = Both::new();
        for (number, step) in steps.iter().enumerate() {
            both.take(step);
            if number % every == 0 {
                prop_assert_eq!(both.queue.rebuild(), None);
                both.compare();
            }
        }
    }
}
