//! The allocator of a domain: which bytes of its windows are leased, free, dirty or committed. Offsets and counts only: it
//! holds no pointer and makes no system call, so it is tested by itself. The domain calls it under its lock.
//!
//! Small leases are blocks of a size class, cut from 32 KiB spans; middling ones are spans in a row within one arena of
//! 2 MiB; large ones are arenas in a row. The limit holds twice: for the bytes leased, exactly, and for the arenas
//! committed, rounded up to a whole one.

pub(crate) mod address_space;
pub(crate) mod regions;
pub(crate) mod size_class;
pub(crate) mod slab;
pub(crate) mod slab_table;
pub(crate) mod span_bits;

use std::ops::Range;

use crate::geometry::{ARENA_BYTES, SPAN_BYTES, arenas_for, round_up_to_line};
use address_space::AddressSpace;
use regions::{RegionTable, RetireUndo, Transit};
use size_class::SizeClass;
use slab::SpanPlace;
use slab_table::{SlabTable, SpareSpan};

/// A leased piece of a domain. It is not to be copied, and comes back by [`Allocator::give`].
#[derive(Debug)]
#[must_use = "a block is lost to its domain unless it is given back"]
pub(crate) struct Block {
    /// Where it begins in the domain.
    pub offset: u64,
    /// What it counts against the limit: the bytes asked for, in whole lines. So many bytes may be used.
    pub charge: u64,
    /// How many of its first bytes may hold old data of the domain.
    pub stale: u64,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Block { slab: u32, index: u8 },
    Spans { place: SpanPlace, count: u32 },
    Row { region: u32 },
}

/// Why there is no block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// It would go over the limit.
    Limit,
    /// So many arenas in a row must be committed first.
    Arenas(u32),
}

/// Why nothing can be committed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommitShortage {
    /// So many arenas must be given back first.
    Committed(u32),
    /// There is no place for it in the windows: add one of so many slots.
    Addresses(u32),
}

/// A free piece that is being scrubbed. Comes back by [`Allocator::give_clean`].
#[derive(Debug)]
#[must_use = "a piece is lost to its domain unless it is given back"]
pub(crate) struct DirtyPiece {
    kind: PieceKind,
    offset: u64,
    /// How many bytes are to be zeroed.
    pub bytes: u64,
}

#[derive(Debug)]
enum PieceKind {
    Blocks { slab: u32, blocks: u128, block_bytes: u64, tail: u64 },
    Span(SpanPlace),
    Row { region: u32, left: u64 },
}

impl DirtyPiece {
    /// The bytes to zero, as ranges of the domain.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let (mut blocks, unit, tail) = match self.kind {
            PieceKind::Blocks { blocks, block_bytes, tail, .. } => (blocks, block_bytes, tail),
            PieceKind::Span(_) | PieceKind::Row { .. } => (1, self.bytes, 0),
        };
        let (base, span_end) = (self.offset, self.offset + SPAN_BYTES as u64);
        let rows = std::iter::from_fn(move || {
            if blocks == 0 {
                return None;
            }
            let first = blocks.trailing_zeros();
            let count = (!(blocks >> first)).trailing_zeros();
            blocks &= !((u128::MAX >> (u128::BITS - count)) << first);
            let start = base + u64::from(first) * unit;
            Some(start..start + u64::from(count) * unit)
        });
        rows.chain((tail != 0).then(|| span_end - tail..span_end))
    }
}

/// The allocator of one domain.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    slabs: SlabTable,
    regions: RegionTable,
    limit: u64,
    in_use: u64,
    high_water: u64,
    leases: u64,
}

impl Allocator {
    /// An allocator of up to `limit` bytes, with no window yet.
    pub(crate) fn new(limit: u64) -> Allocator {
        Allocator { limit, ..Allocator::default() }
    }

    /// Takes a piece of at least `bytes` bytes, aligned to a line.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Block, Shortage> {
        let size = round_up_to_line(bytes.max(1)).ok_or(Shortage::Limit)?;
        let charge = size as u64;
        if charge > self.limit.saturating_sub(self.in_use) {
            return Err(Shortage::Limit);
        }
        let (offset, stale, place) = match SizeClass::of(size) {
            Some(class) => self.take_block(class)?,
            None if size <= ARENA_BYTES => self.take_spans(size.div_ceil(SPAN_BYTES) as u32)?,
            None => self.take_row(u32::try_from(arenas_for(charge)).map_err(|_| Shortage::Limit)?)?,
        };
        self.in_use += charge;
        self.high_water = self.high_water.max(self.in_use);
        self.leases += 1;
        Ok(Block { offset, charge, stale, place })
    }

    /// Takes a block back; it is dirty from now on.
    pub(crate) fn give(&mut self, block: Block) {
        self.in_use -= block.charge;
        self.leases -= 1;
        match block.place {
            Place::Block { slab, index } => {
                let spare = self.slabs.give(slab, index);
                self.give_spare(spare);
            }
            Place::Spans { place, count } => self.regions.give_spans(place, count, true),
            Place::Row { region } => self.regions.give_row(region, block.charge),
        }
    }

    /// Sets a place for `arenas` arenas aside. The memory is to be committed, then [`Allocator::finish_commit`] or
    /// [`Allocator::finish_retire`] called.
    pub(crate) fn begin_commit(&mut self, arenas: u32) -> Result<Transit, CommitShortage> {
        let committed = self.regions.committed_arenas();
        let excess = committed.saturating_add(arenas).saturating_sub(self.arena_limit());
        if excess > 0 {
            return Err(CommitShortage::Committed(excess));
        }
        // the addresses at least double each time, so there are few windows
        let slots = AddressSpace::window_slots(committed.max(arenas));
        self.regions.begin_commit(arenas).ok_or(CommitShortage::Addresses(slots))
    }

    /// The memory of `transit` is there, and zero.
    pub(crate) fn finish_commit(&mut self, transit: Transit) {
        self.regions.finish_commit(transit);
    }

    /// Takes the empty slabs apart that size classes keep in reserve: what looked too small may fit now.
    pub(crate) fn drain_reserves(&mut self) {
        for spare in self.slabs.drain_reserves() {
            self.give_spare(Some(spare));
        }
    }

    /// Sets a wholly free region aside, best one that covers `wanted` arenas. The memory is to be given back, then
    /// [`Allocator::finish_retire`] or [`Allocator::undo_retire`] called.
    pub(crate) fn begin_retire(&mut self, wanted: u32) -> Option<(Transit, RetireUndo)> {
        self.drain_reserves();
        self.regions.begin_retire(wanted)
    }

    /// The memory of `transit` is gone, or never came.
    pub(crate) fn finish_retire(&mut self, transit: Transit) {
        self.regions.finish_retire(transit);
    }

    /// The memory of `transit` could not be given back.
    pub(crate) fn undo_retire(&mut self, transit: Transit, undo: RetireUndo) {
        self.regions.undo_retire(transit, undo);
    }

    /// Adds a window of `slots` slots and returns where it begins in the domain.
    pub(crate) fn add_window(&mut self, slots: u32) -> Option<u64> {
        self.regions.add_window(slots).map(|first| u64::from(first) * ARENA_BYTES as u64)
    }

    /// The next piece to scrub; `None` when nothing is dirty.
    pub(crate) fn take_dirty(&mut self) -> Option<DirtyPiece> {
        self.slabs.take_dirty().or_else(|| self.regions.take_dirty())
    }

    /// Takes a piece back that has been zeroed.
    pub(crate) fn give_clean(&mut self, piece: DirtyPiece) {
        match piece.kind {
            PieceKind::Blocks { slab, blocks, tail, .. } => {
                let spare = self.slabs.give_clean(slab, blocks, tail != 0);
                self.give_spare(spare);
            }
            PieceKind::Span(place) => self.regions.give_spans(place, 1, false),
            PieceKind::Row { region, left } => self.regions.give_scrubbed_row(region, left),
        }
    }

    /// Sets the limit. What is leased stays leased.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Arenas committed beyond the limit, after it was lowered.
    pub(crate) fn excess_arenas(&self) -> u32 {
        self.regions.committed_arenas().saturating_sub(self.arena_limit())
    }

    /// The limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes leased.
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }

    /// The most bytes that were ever leased at once.
    pub(crate) fn high_water(&self) -> u64 {
        self.high_water
    }

    /// Leases out.
    pub(crate) fn leases(&self) -> u64 {
        self.leases
    }

    /// Bytes committed.
    pub(crate) fn committed(&self) -> u64 {
        u64::from(self.regions.committed_arenas()) * ARENA_BYTES as u64
    }

    /// Free bytes that may hold old data.
    pub(crate) fn dirty(&self) -> u64 {
        self.slabs.dirty_bytes() + self.regions.dirty_bytes()
    }

    fn arena_limit(&self) -> u32 {
        u32::try_from(arenas_for(self.limit)).unwrap_or(u32::MAX)
    }

    fn take_block(&mut self, class: SizeClass) -> Result<(u64, u64, Place), Shortage> {
        let block = match self.slabs.take(class) {
            Some(block) => block,
            None => {
                let run = self.regions.take_spans(1).ok_or(Shortage::Arenas(1))?;
                self.slabs.insert(class, run.place, run.dirty);
                self.slabs.take(class).ok_or(Shortage::Arenas(1))?
            }
        };
        let stale = if block.dirty { class.block_bytes() as u64 } else { 0 };
        Ok((block.offset, stale, Place::Block { slab: block.slab, index: block.index }))
    }

    fn take_spans(&mut self, count: u32) -> Result<(u64, u64, Place), Shortage> {
        let run = self.regions.take_spans(count).ok_or(Shortage::Arenas(1))?;
        let stale = if run.dirty { u64::from(count) * SPAN_BYTES as u64 } else { 0 };
        Ok((run.place.offset, stale, Place::Spans { place: run.place, count }))
    }

    fn take_row(&mut self, arenas: u32) -> Result<(u64, u64, Place), Shortage> {
        let (region, offset, stale) = self.regions.take_row(arenas).ok_or(Shortage::Arenas(arenas))?;
        Ok((offset, stale, Place::Row { region }))
    }

    fn give_spare(&mut self, spare: Option<SpareSpan>) {
        if let Some(SpareSpan { place, dirty }) = spare {
            self.regions.give_spans(place, 1, dirty);
        }
    }
}

#[cfg(test)]
mod tests;
