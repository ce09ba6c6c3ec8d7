//! Unit tests of the fair queue, rule by rule: who leads, who rides, what is charged and settled, what a panic leaves.

mod forming;
mod repair;
mod settling;

use std::time::Duration;

use super::*;

const MS: u64 = 1_000_000;
const PLAN: PlanKey = PlanKey(1);
const OTHER_PLAN: PlanKey = PlanKey(2);

/// A queue with a slice of 5 ms, in which a batch of n rows of any of two plans is known to take n ms, and items are names.
struct Bench {
    queue: FairQueue<&'static str>,
    now: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench::with_delay(Duration::ZERO)
    }

    fn with_delay(max_queue_delay: Duration) -> Bench {
        let mut queue = FairQueue::new(FairQueueSettings { slice: Duration::from_millis(5), max_queue_delay });
        for plan in [PLAN, OTHER_PLAN] {
            for rows in [1, 2, 4, 8].into_iter().flat_map(|rows| [rows; constants::ESTIMATE_WINDOW]) {
                queue.learn(plan, rows, Duration::from_millis(u64::from(rows)));
            }
        }
        Bench { queue, now: 0 }
    }

    /// Pushes an entry of one row that comes one nanosecond after the one before, altered by `alter`.
    fn push(&mut self, tenant: u32, item: &'static str, alter: impl FnOnce(&mut Entry<&'static str>)) {
        self.now += 1;
        let mut entry = Entry {
            tenant: TenantSlot(tenant),
            weight: Weight::ONE,
            plan: PLAN,
            rows: Rows::new(1, 8).unwrap(),
            priority: 0,
            arrived: Nanos(self.now),
            unmixed: false,
            item,
        };
        alter(&mut entry);
        self.queue.push(entry);
    }

    fn form(&mut self) -> Option<Batch<&'static str>> {
        self.queue.form_batch(Nanos(self.now), Ok).batch
    }

    /// The next batch's items, the batch settled as predicted.
    fn run(&mut self) -> Vec<&'static str> {
        let Some(batch) = self.form() else { return Vec::new() };
        self.queue.complete(batch.ticket, Settlement::Measured(batch.predicted));
        items(&batch.entries)
    }

    /// The tenant's finish tag in whole milliseconds.
    fn finish(&self, tenant: u32) -> u64 {
        self.queue.tenant_use(TenantSlot(tenant)).unwrap().finish.nanos() / MS
    }

    fn virtual_ms(&self) -> u64 {
        self.queue.virtual_time().nanos() / MS
    }
}

fn items(entries: &[BatchEntry<&'static str>]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.item).collect()
}

fn rows(count: usize) -> impl FnOnce(&mut Entry<&'static str>) {
    move |entry| entry.rows = Rows::new(count, 8).unwrap()
}

fn other_plan(entry: &mut Entry<&'static str>) {
    entry.plan = OTHER_PLAN;
}
