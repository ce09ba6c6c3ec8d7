//! The order in which tenants are served, as a sorted set: of all backlogged tenants, and of those with entries for a plan.
//! Whoever changes what a [`Standing`] is made of has to move the tenant in every ranking it is in.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use insula_core::Nanos;

use super::entry::TenantSlot;
use super::tag::Tag;

/// Where a tenant stands: by its start tag; among equal ones the tenant that became backlogged last comes first, then the one
/// with the smaller share so far; then the slot, so that the order is total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    pub(super) start: Tag,
    pub(super) backlogged: Reverse<Nanos>,
    /// In whole ns over the weight: it only breaks ties.
    pub(super) share: u64,
    pub(super) slot: TenantSlot,
}

/// Tenants by their standings.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    standings: BTreeSet<Standing>,
}

impl Ranking {
    /// Puts a tenant at `to`, away from where it stood.
    pub(super) fn place(&mut self, from: Option<Standing>, to: Standing) {
        if from == Some(to) {
            return;
        }
        if let Some(from) = from {
            self.standings.remove(&from);
        }
        self.standings.insert(to);
    }

    /// Takes a tenant out.
    pub(super) fn remove(&mut self, standing: Standing) {
        self.standings.remove(&standing);
    }

    /// The first tenant, or the first after `passed`.
    pub(super) fn first_after(&self, passed: Option<Standing>) -> Option<Standing> {
        match passed {
            None => self.standings.first().copied(),
            Some(passed) => self.standings.range((Bound::Excluded(passed), Bound::Unbounded)).next().copied(),
        }
    }

    /// How many tenants are in it.
    pub(super) fn len(&self) -> usize {
        self.standings.len()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.standings.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair_queue::Weight;

    fn standing(slot: u32, start: u64, backlogged: u64, share: u64) -> Standing {
        let start = Weight::ONE.distance(start);
        Standing { start, backlogged: Reverse(Nanos(backlogged)), share, slot: TenantSlot(slot) }
    }

    #[test]
    fn ties_go_to_the_latest_comer_then_to_the_smaller_share() {
        let mut ranking = Ranking::default();
        for (slot, (start, backlogged, share)) in
            [(5, 0, 0), (3, 1, 9), (3, 7, 9), (3, 7, 2), (1, 0, 99)].into_iter().enumerate()
        {
            ranking.place(None, standing(slot as u32, start, backlogged, share));
        }
        let mut order = Vec::new();
        let mut passed = None;
        while let Some(next) = ranking.first_after(passed) {
            order.push(next.slot.0);
            passed = Some(next);
        }
        assert_eq!(order, [4, 3, 2, 1, 0]);
    }

    #[test]
    fn a_tenant_that_moves_stands_in_one_place_only() {
        let mut ranking = Ranking::default();
        let (before, after) = (standing(1, 5, 0, 0), standing(1, 9, 0, 4));
        ranking.place(None, before);
        ranking.place(Some(before), after);
        ranking.place(Some(after), after);
        assert_eq!((ranking.len(), ranking.first_after(None)), (1, Some(after)));
        ranking.remove(after);
        assert_eq!(ranking.first_after(None), None);
    }
}
