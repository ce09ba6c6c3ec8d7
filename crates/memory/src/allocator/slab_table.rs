//! All slabs of a domain: for each size class the slabs with room, and the dirty list. It asks for spans and gives them
//! back as soon as a class has an empty slab to spare; it knows nothing of arenas. The allocator calls it.

use super::DirtyPiece;
use super::size_class::SizeClass;
use super::slab::{Slab, SpanPlace};

/// A block taken from a slab.
#[derive(Debug)]
pub(crate) struct SlabBlock {
    pub slab: u32,
    pub index: u8,
    pub offset: u64,
    pub dirty: bool,
}

/// A span that no slab uses any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpareSpan {
    pub place: SpanPlace,
    pub dirty: bool,
}

/// The slabs of one domain.
#[derive(Debug)]
pub(crate) struct SlabTable {
    slabs: Vec<Option<Slab>>,
    vacant: Vec<u32>,
    with_room: [Vec<u32>; SizeClass::COUNT],
    /// Numbers of slabs that had a dirty block when they were put here (they may be clean, gone or another's by now).
    dirty_list: Vec<u32>,
    /// For each number, whether it stands in the dirty list: it does so once at most.
    queued: Vec<bool>,
    dirty_bytes: u64,
}

impl Default for SlabTable {
    fn default() -> Self {
        let with_room = std::array::from_fn(|_| Vec::new());
        SlabTable {
            slabs: Vec::new(),
            vacant: Vec::new(),
            with_room,
            dirty_list: Vec::new(),
            queued: Vec::new(),
            dirty_bytes: 0,
        }
    }
}

impl SlabTable {
    /// Bytes of free blocks that are dirty.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    /// Takes a block of `class` from a slab with room; `None` when there is none.
    pub(crate) fn take(&mut self, class: SizeClass) -> Option<SlabBlock> {
        let id = *self.with_room[class.index()].last()?;
        let slab = self.slabs.get_mut(id as usize)?.as_mut()?;
        let (index, dirty) = slab.take()?;
        let offset = slab.offset_of(index);
        if dirty {
            self.dirty_bytes -= class.block_bytes() as u64;
        }
        if !slab.has_room() {
            self.unlist(id);
        }
        Some(SlabBlock { slab: id, index, offset, dirty })
    }

    /// Cuts a span into blocks of `class`.
    pub(crate) fn insert(&mut self, class: SizeClass, place: SpanPlace, dirty: bool) {
        let slab = Slab::new(class, place, dirty);
        self.dirty_bytes += slab.dirty_bytes();
        let id = match self.vacant.pop() {
            Some(id) => id,
            None => {
                self.slabs.push(None);
                self.queued.push(false);
                (self.slabs.len() - 1) as u32
            }
        };
        self.slabs[id as usize] = Some(slab);
        self.list(id);
        self.queue_if_dirty(id);
    }

    /// Takes a block back. The span comes out when its slab is empty and the class has another one with room.
    pub(crate) fn give(&mut self, id: u32, index: u8) -> Option<SpareSpan> {
        let slab = self.slabs.get_mut(id as usize)?.as_mut()?;
        slab.give(index);
        self.dirty_bytes += slab.class.block_bytes() as u64;
        self.queue_if_dirty(id);
        self.settle(id)
    }

    /// The next dirty blocks to scrub: all those of one slab.
    pub(crate) fn take_dirty(&mut self) -> Option<DirtyPiece> {
        while let Some(id) = self.dirty_list.pop() {
            self.queued[id as usize] = false;
            let Some(slab) = self.slabs[id as usize].as_mut() else { continue };
            if !slab.is_dirty() {
                continue;
            }
            let piece = slab.take_dirty(id);
            self.dirty_bytes -= piece.bytes;
            if !slab.has_room() {
                self.unlist(id);
            }
            return Some(piece);
        }
        None
    }

    /// Takes scrubbed blocks back; as [`SlabTable::give`].
    pub(crate) fn give_clean(&mut self, id: u32, blocks: u128, with_tail: bool) -> Option<SpareSpan> {
        self.slabs.get_mut(id as usize)?.as_mut()?.give_clean(blocks, with_tail);
        self.settle(id)
    }

    /// Takes the empty slabs apart that classes keep in reserve, and hands out their spans.
    pub(crate) fn drain_reserves(&mut self) -> Vec<SpareSpan> {
        let empty = |id: &u32| self.slabs[*id as usize].as_ref().is_some_and(Slab::is_empty);
        let reserves: Vec<u32> = self.with_room.iter().flatten().copied().filter(empty).collect();
        reserves.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// After blocks came back to slab `id`: lists it as having room, or takes it apart.
    fn settle(&mut self, id: u32) -> Option<SpareSpan> {
        let slab = self.slabs[id as usize].as_ref()?;
        let (empty, class) = (slab.is_empty(), slab.class);
        if slab.listed.is_none() {
            self.list(id);
        }
        // one empty slab stays with its class, so that a lone lease that comes and goes does not cut a span each time
        if empty && self.with_room[class.index()].len() > 1 { self.remove(id) } else { None }
    }

    fn remove(&mut self, id: u32) -> Option<SpareSpan> {
        self.unlist(id);
        let slab = self.slabs[id as usize].take()?;
        self.dirty_bytes -= slab.dirty_bytes();
        self.vacant.push(id);
        Some(SpareSpan { place: slab.place, dirty: slab.is_dirty() })
    }

    fn list(&mut self, id: u32) {
        if let Some(slab) = self.slabs[id as usize].as_mut() {
            let list = &mut self.with_room[slab.class.index()];
            slab.listed = Some(list.len() as u32);
            list.push(id);
        }
    }

    fn unlist(&mut self, id: u32) {
        let Some(slab) = self.slabs[id as usize].as_mut() else { return };
        let Some(position) = slab.listed.take() else { return };
        let list = &mut self.with_room[slab.class.index()];
        list.swap_remove(position as usize);
        let moved = list.get(position as usize).copied();
        if let Some(moved) = moved.and_then(|moved| self.slabs[moved as usize].as_mut()) {
            moved.listed = Some(position);
        }
    }

    fn queue_if_dirty(&mut self, id: u32) {
        let dirty = self.slabs[id as usize].as_ref().is_some_and(Slab::is_dirty);
        if dirty && !std::mem::replace(&mut self.queued[id as usize], true) {
            self.dirty_list.push(id);
        }
    }

    /// Dirty bytes counted afresh, for the tests.
    #[cfg(test)]
    pub(crate) fn count_dirty_bytes(&self) -> u64 {
        self.slabs.iter().flatten().map(Slab::dirty_bytes).sum()
    }
}
