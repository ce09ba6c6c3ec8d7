//! What goes into a fair queue: one request of one tenant for one plan, with its rows and its place in the tenant's own
//! order. The submitting side makes entries; the queue never looks into their items.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use insula_core::{Error, Nanos, Result};

use super::tag::Weight;

/// A tenant's number on a shard. Small and dense: the queue keeps a table as long as the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantSlot(pub u32);

/// What may share a batch: one model, version and shape class. Handed out by the runtime one by one, never computed from what
/// callers send: tables of plans hash it weakly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanKey(pub u64);

/// A table by plan.
pub(super) type PlanMap<V> = HashMap<PlanKey, V, BuildHasherDefault<PlanHasher>>;

/// Spreads numbers that are handed out one by one over a table.
#[derive(Debug, Default)]
pub(super) struct PlanHasher(u64);

impl Hasher for PlanHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The odd number nearest to 2^64 over the golden ratio: neighbours end up far apart, in the high bits too.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// The rows of a request, known to fit the model: 1 to `max_batch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    count: u32,
    max_batch: u32,
}

impl Rows {
    /// Checks that a request has at least one row and no more than the model takes at once; an entry is never split.
    pub fn new(count: usize, max_batch: usize) -> Result<Rows> {
        let max_batch = u32::try_from(max_batch).unwrap_or(u32::MAX);
        match u32::try_from(count) {
            Ok(0) => Err(Error::invalid("the request has 0 rows, it needs at least one")),
            Ok(count) if count <= max_batch => Ok(Rows { count, max_batch }),
            _ => Err(Error::invalid(format!(
                "the request has {count} rows, the model takes at most {max_batch} (max_batch): send several requests"
            ))),
        }
    }

    /// How many.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The most rows the model takes in one batch.
    pub fn max_batch(self) -> u32 {
        self.max_batch
    }
}

/// One request in a fair queue.
#[derive(Debug, Clone)]
pub struct Entry<E> {
    /// Whose it is.
    pub tenant: TenantSlot,
    /// The tenant's weight on this shard as its owner has it now; a changed one takes effect with this entry.
    pub weight: Weight,
    /// What it may share a batch with.
    pub plan: PlanKey,
    /// Its rows.
    pub rows: Rows,
    /// 0 if none was stated, else 1 is the most urgent; orders only the tenant's own entries.
    pub priority: u32,
    /// When it came to the shard.
    pub arrived: Nanos,
    /// Whether it must not share a batch with other tenants' rows (a tenant with strict isolation).
    pub unmixed: bool,
    /// What is dispatched.
    pub item: E,
}

/// The order of a tenant's own entries, smallest first: urgency, then age, then the order of coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    urgency: u32,
    arrived: Nanos,
    pub(super) sequence: u64,
}

impl<E> Entry<E> {
    /// The turn of the entry that came as number `sequence`. Entries that state no priority come after all that do.
    pub(super) fn turn(&self, sequence: u64) -> Turn {
        Turn { urgency: self.priority.wrapping_sub(1), arrived: self.arrived, sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_model_are_refused_with_the_limit() {
        assert!(Rows::new(8, 8).is_ok());
        assert!(Rows::new(9, 8).unwrap_err().message().contains("at most 8"));
        assert!(Rows::new(0, 8).is_err());
        assert!(Rows::new(usize::MAX, 8).is_err());
    }

    #[test]
    fn stated_priorities_come_first_then_age() {
        let entry = |priority, arrived| Entry {
            tenant: TenantSlot(0),
            weight: Weight::ONE,
            plan: PlanKey(0),
            rows: Rows::new(1, 1).unwrap(),
            priority,
            arrived: Nanos(arrived),
            unmixed: false,
            item: (),
        };
        let mut turns = [(0, 1), (2, 5), (1, 9), (1, 8), (0, 0)].map(|(priority, arrived)| {
            let turn = entry(priority, arrived).turn(0);
            (turn, priority, arrived)
        });
        turns.sort_unstable();
        assert_eq!(turns.map(|(_, priority, arrived)| (priority, arrived)), [(1, 8), (1, 9), (2, 5), (0, 0), (0, 1)]);
    }
}
