//! Where models are placed: pure decisions over the topology and the last table. No actor, no clock, no await.

use std::sync::Arc;

use crate::model::LoadedModel;
use crate::router::route_table::{Placement, RouteTable, ShardIndex};

/// The router's state: how many shards there are; what is placed is in the table itself.
#[derive(Debug)]
pub struct RouterState {
    shards: usize,
}

impl RouterState {
    /// For `shards` shards, at least one.
    pub fn new(shards: usize) -> RouterState {
        RouterState { shards: shards.max(1) }
    }

    /// The table with a place for `model`: where it is already, else the shard that holds the fewest bytes of weights
    /// (the first of equals).
    pub fn place(&self, table: &RouteTable, model: &Arc<LoadedModel>) -> RouteTable {
        if let Some(placement) = table.placements().get(&model.key()) {
            let placement = Placement { model: Arc::downgrade(model), ..placement.clone() };
            return table.with(model.key(), placement);
        }
        let mut held = vec![0u64; self.shards];
        for placement in table.placements().values() {
            let bytes = placement.model.upgrade().map_or(0, |model| model.bytes());
            for shard in &placement.shards {
                if let Some(held) = held.get_mut(shard.0) {
                    *held += bytes + 1;
                }
            }
        }
        let emptiest = (0..self.shards).min_by_key(|shard| held[*shard]).unwrap_or(0);
        table.with(model.key(), Placement { shards: vec![ShardIndex(emptiest)], model: Arc::downgrade(model) })
    }
}
