//! What a fair queue knows of one tenant: its weight, its tags, what it has used, and its entries, a FIFO a plan. Keeps its
//! own order; how tenants stand among each other is the queue's.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use insula_core::Nanos;

use super::entry::{Entry, PlanKey, Rows, TenantSlot, Turn};
use super::tag::{Tag, Weight};
use super::tag_heap::{Item, Standing};

/// An entry with its place in the tenant's order.
#[derive(Debug)]
pub(super) struct Queued<E> {
    pub(super) turn: Turn,
    pub(super) entry: Entry<E>,
}

impl<E> PartialEq for Queued<E> {
    fn eq(&self, other: &Self) -> bool {
        self.turn == other.turn
    }
}

impl<E> Eq for Queued<E> {}

impl<E> PartialOrd for Queued<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Queued<E> {
    /// The entry whose turn is first is the greatest, as the standard heap wants it.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.turn.cmp(&self.turn)
    }
}

/// A tenant's entries for one plan; never empty while it exists.
#[derive(Debug)]
struct Fifo<E> {
    entries: BinaryHeap<Queued<E>>,
    stamp: u64,
}

/// One tenant on one shard.
#[derive(Debug)]
pub(super) struct Tenant<E> {
    slot: TenantSlot,
    /// Tells this tenant from an earlier one in the same slot.
    pub(super) incarnation: u64,
    pub(super) weight: Weight,
    /// F: the finish tag; while the tenant is backlogged it is also S, the start tag of its next entry.
    pub(super) finish: Tag,
    /// All it was charged, over its weight.
    pub(super) share: Tag,
    backlogged: Nanos,
    /// The device time it used.
    pub(super) device_nanos: u64,
    pub(super) free_rows: u64,
    /// The busy period in which it was last backlogged.
    pub(super) busy_period: u64,
    /// Whether its tag was moved by the batch that is being formed.
    pub(super) moved: bool,
    stamp: u64,
    queued: usize,
    fifos: HashMap<PlanKey, Fifo<E>>,
    heads: BTreeSet<(Turn, PlanKey)>,
    unmixed: HashMap<PlanKey, Nanos>,
}

impl<E> Tenant<E> {
    pub(super) fn new(slot: TenantSlot, incarnation: u64, weight: Weight) -> Self {
        Tenant {
            slot,
            incarnation,
            weight,
            finish: Tag::ZERO,
            share: Tag::ZERO,
            backlogged: Nanos(0),
            device_nanos: 0,
            free_rows: 0,
            busy_period: 0,
            moved: false,
            stamp: 0,
            queued: 0,
            fifos: HashMap::new(),
            heads: BTreeSet::new(),
            unmixed: HashMap::new(),
        }
    }

    /// How many entries it has.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Becomes backlogged at `at`: its start tag is the later of its own finish tag and V.
    pub(super) fn begin_backlog(&mut self, at: Nanos, virtual_time: Tag) {
        self.backlogged = at;
        self.finish = self.finish.max(virtual_time);
    }

    /// Adds an entry; says whether it is the first for its plan.
    pub(super) fn add(&mut self, queued: Queued<E>) -> bool {
        let (plan, turn) = (queued.entry.plan, queued.turn);
        self.queued += 1;
        let mut is_new = false;
        let fifo = self.fifos.entry(plan).or_insert_with(|| {
            is_new = true;
            Fifo { entries: BinaryHeap::new(), stamp: 0 }
        });
        match fifo.entries.peek().map(|head| head.turn) {
            Some(head) if head < turn => {}
            head => {
                head.map(|head| self.heads.remove(&(head, plan)));
                self.heads.insert((turn, plan));
            }
        }
        fifo.entries.push(queued);
        is_new
    }

    /// The entry whose turn is first among all plans.
    pub(super) fn first(&self) -> Option<&Queued<E>> {
        self.heads.first().and_then(|(_, plan)| self.head(*plan))
    }

    /// The entry whose turn is first for `plan`.
    pub(super) fn head(&self, plan: PlanKey) -> Option<&Queued<E>> {
        self.fifos.get(&plan).and_then(|fifo| fifo.entries.peek())
    }

    /// Takes the head of `plan`; says whether it was the last one there.
    pub(super) fn take_head(&mut self, plan: PlanKey) -> Option<(Queued<E>, bool)> {
        let fifo = self.fifos.get_mut(&plan)?;
        let queued = fifo.entries.pop()?;
        self.queued -= 1;
        self.heads.remove(&(queued.turn, plan));
        let next = fifo.entries.peek().map(|head| head.turn);
        match next {
            Some(turn) => {
                self.heads.insert((turn, plan));
            }
            None => {
                self.fifos.remove(&plan);
            }
        }
        Some((queued, next.is_none()))
    }

    /// Takes the entry that came as number `sequence` out of the FIFO of `plan`, wherever it stands. The heads are left to
    /// [`Tenant::recount`].
    pub(super) fn extract(&mut self, plan: PlanKey, sequence: u64) -> Option<Entry<E>> {
        let fifo = self.fifos.get_mut(&plan)?;
        let mut entries = std::mem::take(&mut fifo.entries).into_vec();
        let position = entries.iter().position(|queued| queued.turn.sequence == sequence);
        let found = position.map(|position| entries.swap_remove(position).entry);
        fifo.entries = entries.into();
        found
    }

    /// Derives counts and heads from the FIFOs again.
    pub(super) fn recount(&mut self) {
        self.fifos.retain(|_, fifo| !fifo.entries.is_empty());
        self.queued = self.fifos.values().map(|fifo| fifo.entries.len()).sum();
        let heads = self.fifos.iter().filter_map(|(plan, fifo)| fifo.entries.peek().map(|head| (head.turn, *plan)));
        self.heads = heads.collect();
        self.moved = false;
    }

    /// Takes all entries out.
    pub(super) fn drain(&mut self) -> Vec<Entry<E>> {
        let drained = self.fifos.drain().flat_map(|(_, fifo)| fifo.entries).map(|queued| queued.entry).collect();
        self.heads.clear();
        self.queued = 0;
        drained
    }

    /// The rows of each of its entries, by plan.
    pub(super) fn rows_by_plan(&self) -> impl Iterator<Item = (PlanKey, Vec<Rows>)> {
        let rows = |fifo: &Fifo<E>| fifo.entries.iter().map(|queued| queued.entry.rows).collect();
        self.fifos.iter().map(move |(plan, fifo)| (*plan, rows(fifo)))
    }

    /// The keys of the plans it has entries for.
    pub(super) fn plan_keys(&self) -> impl Iterator<Item = PlanKey> {
        self.fifos.keys().copied()
    }

    /// A new item for the heap of leaders; older ones are no longer current.
    pub(super) fn restamp(&mut self, stamp: u64) -> Item {
        self.stamp = stamp;
        Item { standing: self.standing(), stamp }
    }

    /// A new item for the heap of `plan`; older ones are no longer current. `None` without entries for it.
    pub(super) fn restamp_plan(&mut self, plan: PlanKey, stamp: u64) -> Option<Item> {
        let standing = self.standing();
        let fifo = self.fifos.get_mut(&plan)?;
        fifo.stamp = stamp;
        Some(Item { standing, stamp })
    }

    /// Whether `stamp` is that of its current item in the heap of leaders.
    pub(super) fn is_current(&self, stamp: u64) -> bool {
        self.queued > 0 && self.stamp == stamp
    }

    /// Whether `stamp` is that of its current item in the heap of `plan`.
    pub(super) fn is_current_in(&self, plan: PlanKey, stamp: u64) -> bool {
        self.fifos.get(&plan).is_some_and(|fifo| fifo.stamp == stamp)
    }

    fn standing(&self) -> Standing {
        Standing { start: self.finish, backlogged: Reverse(self.backlogged), share: self.share, slot: self.slot }
    }

    /// Changes the weight. What lies between V and the finish tag is device time taken ahead: it is kept as such.
    pub(super) fn set_weight(&mut self, weight: Weight, virtual_time: Tag) {
        let ahead = self.finish.minus(virtual_time);
        if ahead > Tag::ZERO {
            self.finish = virtual_time.plus(self.weight.convert(ahead, weight));
        }
        self.share = self.weight.convert(self.share, weight);
        self.weight = weight;
    }

    /// Keeps its rows of `plan` apart from other tenants' until `until`.
    pub(super) fn unmix(&mut self, plan: PlanKey, until: Nanos, now: Nanos) {
        self.unmixed.retain(|_, end| *end > now);
        let end = self.unmixed.entry(plan).or_insert(until);
        *end = until.max(*end);
    }

    /// Whether its rows of `plan` are kept apart at `now`.
    pub(super) fn is_unmixed(&self, plan: PlanKey, now: Nanos) -> bool {
        !self.unmixed.is_empty() && self.unmixed.get(&plan).is_some_and(|end| *end > now)
    }
}
