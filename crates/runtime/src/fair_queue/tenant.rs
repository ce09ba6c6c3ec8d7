//! What a fair queue knows of one tenant: its weight, its tags, what it has used, and its entries, a FIFO a plan. Keeps its
//! own order; how tenants stand among each other is the queue's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use insula_core::Nanos;

use super::entry::{Entry, PlanKey, Rows, TenantSlot, Turn};
use super::ranking::Standing;
use super::tag::{Tag, Weight};

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
    plan: PlanKey,
    entries: BinaryHeap<Queued<E>>,
    /// Where the tenant stands in the plan's ranking.
    standing: Option<Standing>,
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
    /// Where it stands among the backlogged tenants.
    standing: Option<Standing>,
    queued: usize,
    /// Few as a rule: at most as many as the tenant may have entries.
    fifos: Vec<Fifo<E>>,
    unmixed: Vec<(PlanKey, Nanos)>,
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
            standing: None,
            queued: 0,
            fifos: Vec::new(),
            unmixed: Vec::new(),
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
        self.queued += 1;
        let plan = queued.entry.plan;
        match self.fifos.iter_mut().find(|fifo| fifo.plan == plan) {
            Some(fifo) => {
                fifo.entries.push(queued);
                false
            }
            None => {
                self.fifos.push(Fifo { plan, entries: BinaryHeap::from([queued]), standing: None });
                true
            }
        }
    }

    /// The entry whose turn is first among all plans.
    pub(super) fn first(&self) -> Option<&Queued<E>> {
        self.fifos.iter().filter_map(|fifo| fifo.entries.peek()).min_by_key(|queued| queued.turn)
    }

    /// The entry whose turn is first for `plan`.
    pub(super) fn head(&self, plan: PlanKey) -> Option<&Queued<E>> {
        self.fifos.iter().find(|fifo| fifo.plan == plan).and_then(|fifo| fifo.entries.peek())
    }

    /// Takes the head of `plan`; with it, if it was the last one there, where the tenant stood in the plan's ranking.
    pub(super) fn take_head(&mut self, plan: PlanKey) -> Option<(Queued<E>, Option<Standing>)> {
        let position = self.fifos.iter().position(|fifo| fifo.plan == plan)?;
        let queued = self.fifos[position].entries.pop()?;
        self.queued -= 1;
        let emptied = self.fifos[position].entries.is_empty();
        let left = if emptied { self.fifos.swap_remove(position).standing } else { None };
        Some((queued, left))
    }

    /// Takes the entry that came as number `sequence` out of the FIFO of `plan`, wherever it stands. The rest is left to
    /// [`Tenant::recount`].
    pub(super) fn extract(&mut self, plan: PlanKey, sequence: u64) -> Option<Entry<E>> {
        let fifo = self.fifos.iter_mut().find(|fifo| fifo.plan == plan)?;
        let mut entries = std::mem::take(&mut fifo.entries).into_vec();
        let position = entries.iter().position(|queued| queued.turn.sequence == sequence);
        let found = position.map(|position| entries.swap_remove(position).entry);
        fifo.entries = entries.into();
        found
    }

    /// Counts the entries again and forgets its standings, for rankings that are empty.
    pub(super) fn recount(&mut self) {
        self.fifos.retain(|fifo| !fifo.entries.is_empty());
        self.fifos.iter_mut().for_each(|fifo| fifo.standing = None);
        self.queued = self.fifos.iter().map(|fifo| fifo.entries.len()).sum();
        self.standing = None;
    }

    /// Takes all entries out.
    pub(super) fn drain(&mut self) -> Vec<Entry<E>> {
        self.queued = 0;
        let queued = self.fifos.drain(..).flat_map(|fifo| fifo.entries);
        queued.map(|queued| queued.entry).collect()
    }

    /// The rows of each of its entries by plan, with where it stands in the plan's ranking.
    pub(super) fn plans(&self) -> impl Iterator<Item = (PlanKey, Vec<Rows>, Option<Standing>)> {
        let rows = |fifo: &Fifo<E>| fifo.entries.iter().map(|queued| queued.entry.rows).collect();
        self.fifos.iter().map(move |fifo| (fifo.plan, rows(fifo), fifo.standing))
    }

    /// Moves to where it now belongs among the backlogged tenants: from, to.
    pub(super) fn restand(&mut self) -> (Option<Standing>, Standing) {
        let to = self.current_standing();
        (self.standing.replace(to), to)
    }

    /// Is no longer among the backlogged tenants; returns where it stood.
    pub(super) fn unstand(&mut self) -> Option<Standing> {
        self.standing.take()
    }

    /// Moves to where it now belongs in the rankings of the plans that it has entries for and that are `wanted`: plan, from,
    /// to.
    pub(super) fn restand_in_plans(
        &mut self,
        wanted: impl Fn(PlanKey) -> bool,
    ) -> impl Iterator<Item = (PlanKey, Option<Standing>, Standing)> {
        let to = self.current_standing();
        let fifos = self.fifos.iter_mut().filter(move |fifo| wanted(fifo.plan));
        fifos.map(move |fifo| (fifo.plan, fifo.standing.replace(to), to))
    }

    fn current_standing(&self) -> Standing {
        let (start, share) = (self.finish, self.share.nanos());
        Standing { start, backlogged: Reverse(self.backlogged), share, slot: self.slot }
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
        self.unmixed.retain(|(_, end)| *end > now);
        match self.unmixed.iter_mut().find(|(kept, _)| *kept == plan) {
            Some((_, end)) => *end = until.max(*end),
            None => self.unmixed.push((plan, until)),
        }
    }

    /// Whether its rows of `plan` are kept apart at `now`.
    pub(super) fn is_unmixed(&self, plan: PlanKey, now: Nanos) -> bool {
        self.unmixed.iter().any(|(kept, end)| *kept == plan && *end > now)
    }
}
