//! Committed memory of a domain: regions of one arena, cut into spans, and regions of several arenas in a row, leased
//! whole. Each lies between guard gaps. States and numbers only: who calls it (the allocator, for the domain) does the
//! system calls between `begin_*` and `finish_*`, while the region is out of everybody's reach.

use super::address_space::AddressSpace;
use super::slab::SpanPlace;
use super::span_bits;
use super::{DirtyPiece, PieceKind};
use crate::geometry::{ARENA_BYTES, SPAN_BYTES, SPANS_PER_ARENA};

/// The most bytes of a row of arenas that are scrubbed at once.
const SCRUB_STEP_BYTES: u64 = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The number is free.
    Vacant,
    /// Being committed, decommitted or scrubbed; still counted as committed.
    Busy,
    /// One arena: a bit for each free span, and for each that is free and dirty.
    Spans { free: u64, dirty: u64 },
    /// Several arenas, not leased: its first `dirty` bytes may hold old data.
    FreeRow { dirty: u64 },
    /// Several arenas, leased: its first `stale` bytes held old data when it was leased.
    LeasedRow { stale: u64 },
}

#[derive(Debug)]
struct Region {
    slot: u32,
    arenas: u32,
    purpose: Use,
    queued: bool,
}

/// Spans in a row, taken from an arena.
#[derive(Debug)]
pub(crate) struct SpanRun {
    pub place: SpanPlace,
    pub dirty: bool,
}

/// A region on its way in or out: memory between `offset` and `offset + bytes` of the domain.
#[derive(Debug)]
#[must_use = "a region in transit is lost unless it is finished or called off"]
pub(crate) struct Transit {
    region: u32,
    pub offset: u64,
    pub bytes: u64,
}

/// The regions of one domain.
#[derive(Debug, Default)]
pub(crate) struct RegionTable {
    regions: Vec<Region>,
    /// For each region the longest row of free spans (0 for all that is not an arena): kept apart to be searched fast.
    longest: Vec<u8>,
    vacant: Vec<u32>,
    addresses: AddressSpace,
    dirty_list: Vec<u32>,
    dirty_bytes: u64,
    committed_arenas: u32,
}

impl RegionTable {
    /// Bytes of free spans and rows that are dirty.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    /// Arenas committed or about to be.
    pub(crate) fn committed_arenas(&self) -> u32 {
        self.committed_arenas
    }

    /// Adds a window of `slots` slots; the number of its first.
    pub(crate) fn add_window(&mut self, slots: u32) -> Option<u32> {
        self.addresses.add_window(slots)
    }

    /// Takes `count` spans in a row from the first arena that has them.
    pub(crate) fn take_spans(&mut self, count: u32) -> Option<SpanRun> {
        let id = self.longest.iter().position(|longest| u32::from(*longest) >= count)?;
        let region = &mut self.regions[id];
        let Use::Spans { free, dirty } = &mut region.purpose else { return None };
        let span = span_bits::find_run(*free, count)?;
        let taken = span_bits::run(span, count);
        let was_dirty = *dirty & taken;
        *free &= !taken;
        *dirty &= !taken;
        self.dirty_bytes -= span_bytes(was_dirty);
        let offset = offset_of(region.slot) + u64::from(span) * SPAN_BYTES as u64;
        let place = SpanPlace { region: id as u32, span, offset };
        self.measure(place.region);
        Some(SpanRun { place, dirty: was_dirty != 0 })
    }

    /// Takes `count` spans back.
    pub(crate) fn give_spans(&mut self, place: SpanPlace, count: u32, is_dirty: bool) {
        let given = span_bits::run(place.span, count);
        let Some(Region { purpose: Use::Spans { free, dirty }, .. }) = self.regions.get_mut(place.region as usize)
        else {
            debug_assert!(false, "spans came back to region {}, which is no arena", place.region);
            return;
        };
        debug_assert_eq!(*free & given, 0, "a span was free already");
        *free |= given;
        if is_dirty {
            *dirty |= given;
            self.dirty_bytes += span_bytes(given);
            self.queue(place.region);
        }
        self.measure(place.region);
    }

    /// Takes a free row of `arenas` arenas, or of up to a quarter more: number, offset and how much of it is stale.
    pub(crate) fn take_row(&mut self, arenas: u32) -> Option<(u32, u64, u64)> {
        let snug = arenas..=arenas.saturating_add(arenas / 4);
        let fits = |region: &Region| matches!(region.purpose, Use::FreeRow { .. }) && snug.contains(&region.arenas);
        let found = self.regions.iter().enumerate().filter(|(_, region)| fits(region));
        let (id, _) = found.min_by_key(|(_, region)| region.arenas)?;
        let region = &mut self.regions[id];
        let Use::FreeRow { dirty: stale } = region.purpose else { return None };
        region.purpose = Use::LeasedRow { stale };
        self.dirty_bytes -= stale;
        Some((id as u32, offset_of(region.slot), stale))
    }

    /// Takes a row back whose first `written` bytes may have been written.
    pub(crate) fn give_row(&mut self, id: u32, written: u64) {
        let Some(region) = self.regions.get_mut(id as usize) else { return };
        let Use::LeasedRow { stale } = region.purpose else {
            debug_assert!(false, "region {id} came back and was not leased");
            return;
        };
        let dirty = stale.max(written);
        region.purpose = Use::FreeRow { dirty };
        self.dirty_bytes += dirty;
        self.queue(id);
    }

    /// Sets a place for `arenas` arenas aside; `None` when the windows have none.
    pub(crate) fn begin_commit(&mut self, arenas: u32) -> Option<Transit> {
        let slot = self.addresses.take(arenas)?;
        let region = Region { slot, arenas, purpose: Use::Busy, queued: false };
        let id = match self.vacant.pop() {
            Some(id) => {
                // the number may still stand in the dirty list
                let queued = self.regions[id as usize].queued;
                self.regions[id as usize] = Region { queued, ..region };
                id
            }
            None => {
                self.regions.push(region);
                self.longest.push(0);
                (self.regions.len() - 1) as u32
            }
        };
        self.committed_arenas += arenas;
        Some(self.transit(id))
    }

    /// The memory of `transit` is there, and zero.
    pub(crate) fn finish_commit(&mut self, transit: Transit) {
        let region = &mut self.regions[transit.region as usize];
        region.purpose = match region.arenas {
            1 => Use::Spans { free: u64::MAX, dirty: 0 },
            _ => Use::FreeRow { dirty: 0 },
        };
        self.measure(transit.region);
    }

    /// Sets a wholly free region aside to be given back to the system: one that alone covers `wanted` arenas and is no
    /// larger than it must be, else the largest.
    pub(crate) fn begin_retire(&mut self, wanted: u32) -> Option<(Transit, RetireUndo)> {
        let free = self.regions.iter().enumerate().filter(|(_, region)| region.is_free());
        let best = free.max_by_key(|(_, region)| match region.arenas >= wanted {
            true => (true, u32::MAX - region.arenas),
            false => (false, region.arenas),
        });
        let id = best?.0 as u32;
        let region = &mut self.regions[id as usize];
        let purpose = std::mem::replace(&mut region.purpose, Use::Busy);
        self.dirty_bytes -= purpose.dirty_bytes();
        self.measure(id);
        Some((self.transit(id), RetireUndo(purpose)))
    }

    /// The memory of `transit` is gone (or never came): its place is free.
    pub(crate) fn finish_retire(&mut self, transit: Transit) {
        let region = &mut self.regions[transit.region as usize];
        region.purpose = Use::Vacant;
        self.committed_arenas -= region.arenas;
        self.addresses.give(region.slot, region.arenas);
        self.vacant.push(transit.region);
    }

    /// The memory of `transit` could not be given back: the region is free as before.
    pub(crate) fn undo_retire(&mut self, transit: Transit, undo: RetireUndo) {
        self.dirty_bytes += undo.0.dirty_bytes();
        self.regions[transit.region as usize].purpose = undo.0;
        self.measure(transit.region);
        self.queue(transit.region);
    }

    /// The next dirty piece: a span, or the last part of a row's dirty bytes.
    pub(crate) fn take_dirty(&mut self) -> Option<DirtyPiece> {
        while let Some(id) = self.dirty_list.last().copied() {
            let region = &mut self.regions[id as usize];
            let base = offset_of(region.slot);
            let piece = match &mut region.purpose {
                Use::Spans { free, dirty } if *dirty != 0 => {
                    let span = dirty.trailing_zeros();
                    *free &= !(1 << span);
                    *dirty &= !(1 << span);
                    let place = SpanPlace { region: id, span, offset: base + u64::from(span) * SPAN_BYTES as u64 };
                    DirtyPiece { kind: PieceKind::Span(place), offset: place.offset, bytes: SPAN_BYTES as u64 }
                }
                Use::FreeRow { dirty } if *dirty != 0 => {
                    let bytes = SCRUB_STEP_BYTES.min(*dirty);
                    let left = *dirty - bytes;
                    region.purpose = Use::Busy;
                    // the whole row's dirt leaves the count here; what is left of it comes back with the row
                    self.dirty_bytes -= left;
                    DirtyPiece { kind: PieceKind::Row { region: id, left }, offset: base + left, bytes }
                }
                _ => {
                    region.queued = false;
                    self.dirty_list.pop();
                    continue;
                }
            };
            self.dirty_bytes -= piece.bytes;
            self.measure(id);
            return Some(piece);
        }
        None
    }

    /// Takes a scrubbed row back, of which `left` bytes are still dirty.
    pub(crate) fn give_scrubbed_row(&mut self, id: u32, left: u64) {
        let Some(region) = self.regions.get_mut(id as usize) else { return };
        region.purpose = Use::FreeRow { dirty: left };
        self.dirty_bytes += left;
        self.queue(id);
    }

    fn transit(&self, id: u32) -> Transit {
        let region = &self.regions[id as usize];
        let bytes = u64::from(region.arenas) * ARENA_BYTES as u64;
        Transit { region: id, offset: offset_of(region.slot), bytes }
    }

    fn measure(&mut self, id: u32) {
        let longest = match self.regions[id as usize].purpose {
            Use::Spans { free, .. } => span_bits::longest_run(free),
            _ => 0,
        };
        debug_assert!(longest <= SPANS_PER_ARENA);
        self.longest[id as usize] = longest as u8;
    }

    fn queue(&mut self, id: u32) {
        let region = &mut self.regions[id as usize];
        if region.purpose.dirty_bytes() != 0 && !std::mem::replace(&mut region.queued, true) {
            self.dirty_list.push(id);
        }
    }

    /// Dirty bytes, committed arenas and wholly free arenas counted afresh, for the tests.
    #[cfg(test)]
    pub(crate) fn count(&self) -> (u64, u32, u32) {
        let dirty = self.regions.iter().map(|region| region.purpose.dirty_bytes()).sum();
        let there = self.regions.iter().filter(|region| region.purpose != Use::Vacant);
        let free = self.regions.iter().filter(|region| region.is_free());
        (dirty, there.map(|region| region.arenas).sum(), free.map(|region| region.arenas).sum())
    }
}

/// What a region was before it was set aside to be given back.
#[derive(Debug)]
pub(crate) struct RetireUndo(Use);

impl Region {
    fn is_free(&self) -> bool {
        matches!(self.purpose, Use::Spans { free: u64::MAX, .. } | Use::FreeRow { .. })
    }
}

impl Use {
    fn dirty_bytes(self) -> u64 {
        match self {
            Use::Spans { dirty, .. } => span_bytes(dirty),
            Use::FreeRow { dirty } => dirty,
            Use::Vacant | Use::Busy | Use::LeasedRow { .. } => 0,
        }
    }
}

fn span_bytes(spans: u64) -> u64 {
    u64::from(spans.count_ones()) * SPAN_BYTES as u64
}

fn offset_of(slot: u32) -> u64 {
    u64::from(slot) * ARENA_BYTES as u64
}
