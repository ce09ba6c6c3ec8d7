//! A slab: one span cut into blocks of one size class, with a bit for each block that is free and one for each that is
//! free and dirty. It knows no other slab and no pointer; the slab table owns it.

use super::size_class::SizeClass;
use super::{DirtyPiece, PieceKind};
use crate::geometry::SPAN_BYTES;

/// Where a span lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanPlace {
    /// The arena's number in the region table.
    pub region: u32,
    /// The span's number in the arena.
    pub span: u32,
    /// Where the span begins in the domain.
    pub offset: u64,
}

/// A span cut into blocks.
#[derive(Debug)]
pub(crate) struct Slab {
    pub class: SizeClass,
    pub place: SpanPlace,
    free: u128,
    /// A subset of `free`.
    dirty: u128,
    /// Bytes behind the last block, too few for one more, that may hold old data.
    dirty_tail: u64,
    /// Whether the tail is being scrubbed: until it is done the span must not go to anybody else.
    tail_held: bool,
    /// The slab's position in its class's list of slabs with room, while it is there.
    pub listed: Option<u32>,
}

impl Slab {
    /// A slab of free blocks, all dirty if the span was.
    pub(crate) fn new(class: SizeClass, place: SpanPlace, dirty: bool) -> Slab {
        let free = class.all_blocks();
        let tail = (SPAN_BYTES - class.blocks() as usize * class.block_bytes()) as u64;
        let (dirty, dirty_tail) = if dirty { (free, tail) } else { (0, 0) };
        Slab { class, place, free, dirty, dirty_tail, tail_held: false, listed: None }
    }

    /// Takes the lowest free block: its number, and whether it is dirty.
    pub(crate) fn take(&mut self) -> Option<(u8, bool)> {
        if self.free == 0 {
            return None;
        }
        let index = self.free.trailing_zeros();
        let bit = 1u128 << index;
        let dirty = self.dirty & bit != 0;
        self.free &= !bit;
        self.dirty &= !bit;
        Some((index as u8, dirty))
    }

    /// Takes a block back; what was written to it is still there.
    pub(crate) fn give(&mut self, index: u8) {
        let bit = 1u128 << index;
        debug_assert_eq!(self.free & bit, 0, "block {index} was free already");
        self.free |= bit;
        self.dirty |= bit;
    }

    /// Takes all that is dirty out, to be scrubbed and given back by [`Slab::give_clean`]. `slab` is this slab's number.
    pub(crate) fn take_dirty(&mut self, slab: u32) -> DirtyPiece {
        let bytes = self.dirty_bytes();
        let blocks = std::mem::take(&mut self.dirty);
        let tail = std::mem::take(&mut self.dirty_tail);
        self.free &= !blocks;
        self.tail_held |= tail != 0;
        let block_bytes = self.class.block_bytes() as u64;
        DirtyPiece { kind: PieceKind::Blocks { slab, blocks, block_bytes, tail }, offset: self.place.offset, bytes }
    }

    /// Takes scrubbed blocks back, and the tail if it was part of the piece.
    pub(crate) fn give_clean(&mut self, blocks: u128, with_tail: bool) {
        debug_assert_eq!(self.free & blocks, 0, "a scrubbed block was free already");
        self.free |= blocks;
        self.tail_held &= !with_tail;
    }

    /// Where block number `index` begins in the domain.
    pub(crate) fn offset_of(&self, index: u8) -> u64 {
        self.place.offset + u64::from(index) * self.class.block_bytes() as u64
    }

    /// Whether a block can be taken.
    pub(crate) fn has_room(&self) -> bool {
        self.free != 0
    }

    /// Whether the span can go to somebody else.
    pub(crate) fn is_empty(&self) -> bool {
        self.free == self.class.all_blocks() && !self.tail_held
    }

    /// Whether anything free is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty != 0 || self.dirty_tail != 0
    }

    /// Bytes that are free and dirty.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        u64::from(self.dirty.count_ones()) * self.class.block_bytes() as u64 + self.dirty_tail
    }
}
