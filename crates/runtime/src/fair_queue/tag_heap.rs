//! Tenants by their start tags, with cheap re-ordering: a tenant whose tag changed is pushed again under a new stamp and the
//! old item is recognised by its stamp and dropped when it comes up. Who is current is the caller's to say.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use insula_core::Nanos;

use super::entry::TenantSlot;
use super::tag::Tag;

/// The order in which tenants are served: the start tag; among equal ones the tenant that became backlogged last, then the
/// one with the smaller share so far; then the slot, so that the order is total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    pub(super) start: Tag,
    pub(super) backlogged: Reverse<Nanos>,
    pub(super) share: Tag,
    pub(super) slot: TenantSlot,
}

/// A tenant's standing at the time of the push that `stamp` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) standing: Standing,
    pub(super) stamp: u64,
}

/// A heap of [`Item`]s of which some are no longer current.
#[derive(Debug, Default)]
pub(super) struct TagHeap {
    items: BinaryHeap<Reverse<Item>>,
}

/// A heap this small is not worth tidying.
const SMALL: usize = 64;

impl TagHeap {
    /// Adds `item`. `members` is how many current items there can be; when stale ones outnumber them they are swept out, so
    /// the heap's size and the sweeps' cost are bounded by the pushes.
    pub(super) fn push(&mut self, item: Item, members: usize, is_current: impl Fn(&Item) -> bool) {
        if self.items.len() > SMALL + 2 * members {
            self.items.retain(|Reverse(item)| is_current(item));
        }
        self.items.push(Reverse(item));
    }

    /// Takes the smallest current item.
    pub(super) fn pop(&mut self, is_current: impl Fn(&Item) -> bool) -> Option<Item> {
        while let Some(Reverse(item)) = self.items.pop() {
            if is_current(&item) {
                return Some(item);
            }
        }
        None
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.items.clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(start: u64, backlogged: u64, share: u64, stamp: u64) -> Item {
        let one = super::super::tag::Weight::ONE;
        let standing = Standing {
            start: one.distance(start),
            backlogged: Reverse(Nanos(backlogged)),
            share: one.distance(share),
            slot: TenantSlot(stamp as u32),
        };
        Item { standing, stamp }
    }

    #[test]
    fn ties_go_to_the_latest_comer_then_to_the_smaller_share() {
        let mut heap = TagHeap::default();
        for (stamp, (start, backlogged, share)) in
            [(5, 0, 0), (3, 1, 9), (3, 7, 9), (3, 7, 2), (1, 0, 99)].into_iter().enumerate()
        {
            heap.push(item(start, backlogged, share, stamp as u64), 5, |_| true);
        }
        let order: Vec<u64> = std::iter::from_fn(|| heap.pop(|_| true)).map(|item| item.stamp).collect();
        assert_eq!(order, [4, 3, 2, 1, 0]);
    }

    #[test]
    fn stale_items_are_passed_over_and_do_not_pile_up() {
        let mut heap = TagHeap::default();
        for stamp in 0..10_000 {
            heap.push(item(10_000 - stamp, 0, 0, stamp), 1, |item| item.stamp + 1 == stamp);
        }
        assert!(heap.len() <= SMALL + 3, "{} items for one tenant", heap.len());
        assert_eq!(heap.pop(|item| item.stamp == 9_990).map(|item| item.stamp), Some(9_990));
    }
}
