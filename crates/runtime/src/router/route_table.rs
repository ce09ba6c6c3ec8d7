//! Which shard serves which plan: an immutable table that requests read without asking anyone. Only the router makes new
//! ones. It outlives the router's actor, so a killed router leaves serving on the last table.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use insula_core::{Error, Refusal, Result};

use crate::fair_queue::PlanKey;
use crate::model::LoadedModel;

/// The position of a shard in its runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardIndex(pub usize);

/// A model's place.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The shards that hold replicas, at least one.
    pub shards: Vec<ShardIndex>,
    /// The model; gone once no tenant has it.
    pub model: Weak<LoadedModel>,
}

/// All placements at one moment.
#[derive(Debug, Clone, Default)]
pub struct RouteTable {
    placements: HashMap<PlanKey, Placement>,
}

impl RouteTable {
    /// The placements.
    pub fn placements(&self) -> &HashMap<PlanKey, Placement> {
        &self.placements
    }

    /// The same table with `placement` for `plan`, without the places of models that nobody has any more.
    #[must_use]
    pub fn with(&self, plan: PlanKey, placement: Placement) -> RouteTable {
        let alive =
            |(key, place): (&PlanKey, &Placement)| (place.model.strong_count() > 0).then(|| (*key, place.clone()));
        let mut placements: HashMap<_, _> = self.placements.iter().filter_map(alive).collect();
        placements.insert(plan, placement);
        RouteTable { placements }
    }
}

/// The table in force.
#[derive(Debug, Default)]
pub struct Routes {
    table: ArcSwap<RouteTable>,
}

impl Routes {
    /// The table in force now.
    pub fn load(&self) -> Arc<RouteTable> {
        self.table.load_full()
    }

    /// Puts `table` in force. Only the router calls this.
    pub(super) fn publish(&self, table: RouteTable) {
        self.table.store(Arc::new(table));
    }

    /// The shard for a request of `plan`: of two replicas picked by `hash`, the one with the smaller `backlog` (ns of device time).
    pub fn pick(&self, plan: PlanKey, hash: u64, backlog: impl Fn(ShardIndex) -> u64) -> Result<ShardIndex> {
        let table = self.table.load();
        let shards = table.placements.get(&plan).map_or(&[][..], |placement| &placement.shards);
        let count = shards.len() as u64;
        match shards {
            [] => Err(not_placed()),
            [only] => Ok(*only),
            _ => {
                let first = (hash % count) as usize;
                let step = 1 + (hash >> 32) % (count - 1);
                let second = ((first as u64 + step) % count) as usize;
                let better = backlog(shards[second]) < backlog(shards[first]);
                Ok(if better { shards[second] } else { shards[first] })
            }
        }
    }
}

fn not_placed() -> Error {
    let (window, retry_after) = (std::time::Duration::ZERO, std::time::Duration::from_secs(1));
    let refusal = Refusal { limit: "placement", value: 0.0, used: 0.0, window, retry_after };
    Error::unavailable("no worker serves this model at the moment: try again", refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(shards: &[usize]) -> Routes {
        let routes = Routes::default();
        let shards = shards.iter().map(|index| ShardIndex(*index)).collect();
        routes.publish(RouteTable::default().with(PlanKey(7), Placement { shards, model: Weak::new() }));
        routes
    }

    #[test]
    fn two_different_replicas_are_compared_and_the_idler_one_is_taken() {
        let routes = routes(&[0, 1, 2, 3]);
        for hash in [0, 1, 5 << 32, (7 << 32) + 3, u64::MAX] {
            let busy = std::cell::RefCell::new(Vec::new());
            let picked = routes.pick(PlanKey(7), hash, |shard| {
                busy.borrow_mut().push(shard);
                if shard.0 == 2 { 0 } else { 100 }
            });
            let asked = busy.into_inner();
            assert_eq!(asked.len(), 2);
            assert_ne!(asked[0], asked[1]);
            assert_eq!(picked.unwrap() == ShardIndex(2), asked.contains(&ShardIndex(2)));
        }
    }

    #[test]
    fn a_plan_without_a_place_is_refused_and_can_be_retried() {
        let error = routes(&[0]).pick(PlanKey(8), 1, |_| 0).unwrap_err();
        assert_eq!(error.code(), insula_core::Code::Unavailable);
    }

    #[test]
    fn places_of_models_that_nobody_has_go_with_the_next_table() {
        let table =
            RouteTable::default().with(PlanKey(1), Placement { shards: vec![ShardIndex(0)], model: Weak::new() });
        let next = table.with(PlanKey(2), Placement { shards: vec![ShardIndex(0)], model: Weak::new() });
        assert!(!next.placements().contains_key(&PlanKey(1)));
        assert!(next.placements().contains_key(&PlanKey(2)));
    }
}
