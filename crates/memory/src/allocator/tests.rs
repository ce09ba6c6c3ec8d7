//! The allocator against a model that marks every line of memory as written or zero: random sequences of leases, returns,
//! scrubs, retirements and changes of the limit. No memory is touched.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::geometry::LINE_BYTES;
use crate::test_config::cases;

const MIB: u64 = 1 << 20;

/// An allocator with a stand-in for the domain: it commits and gives back at once, and checks what it is told.
struct Model {
    allocator: Allocator,
    live: Vec<Block>,
    scrubbing: Vec<DirtyPiece>,
    committed: Vec<Range<u64>>,
    windows: Vec<Range<u64>>,
    /// For each line of all windows, whether it holds old data.
    written: Vec<bool>,
}

impl Model {
    fn new(limit: u64) -> Model {
        let allocator = Allocator::new(limit);
        Model { allocator, live: vec![], scrubbing: vec![], committed: vec![], windows: vec![], written: vec![] }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Shortage> {
        loop {
            let arenas = match self.allocator.take(bytes) {
                Ok(block) => {
                    self.check_new(&block, bytes);
                    self.live.push(block);
                    return Ok(());
                }
                Err(Shortage::Limit) => return Err(Shortage::Limit),
                Err(Shortage::Arenas(arenas)) => arenas,
            };
            match self.allocator.begin_commit(arenas) {
                Ok(transit) => self.commit(transit),
                Err(CommitShortage::Addresses(slots)) => self.add_window(slots),
                Err(CommitShortage::Committed(excess)) => {
                    if !self.retire(excess) {
                        return Err(Shortage::Arenas(arenas));
                    }
                }
            }
        }
    }

    fn add_window(&mut self, slots: u32) {
        let start = self.allocator.add_window(slots).unwrap();
        let end = start + u64::from(slots) * ARENA_BYTES as u64;
        self.windows.push(start..end);
        self.written.resize(end as usize / LINE_BYTES, false);
    }

    fn commit(&mut self, transit: Transit) {
        let range = transit.offset..transit.offset + transit.bytes;
        let gap = ARENA_BYTES as u64;
        assert!(self.windows.iter().any(|window| window.start + gap <= range.start && range.end + gap <= window.end));
        assert!(self.committed.iter().all(|other| range.end + gap <= other.start || other.end + gap <= range.start));
        let most = arenas_for(self.allocator.limit()) * ARENA_BYTES as u64;
        assert!(self.allocator.committed() <= most, "more is committed than the limit in whole arenas");
        self.mark(range.clone(), false);
        self.committed.push(range);
        self.allocator.finish_commit(transit);
    }

    fn retire(&mut self, wanted: u32) -> bool {
        let Some((transit, _)) = self.allocator.begin_retire(wanted) else { return false };
        let range = transit.offset..transit.offset + transit.bytes;
        assert!(self.live.iter().all(|block| !overlap(&range, &extent(block))), "a region in use is given back");
        let before = self.committed.len();
        self.committed.retain(|other| *other != range);
        assert_eq!(self.committed.len() + 1, before);
        self.mark(range, false);
        self.allocator.finish_retire(transit);
        true
    }

    fn give(&mut self, index: usize) {
        let block = self.live.swap_remove(index);
        self.mark(extent(&block), true);
        self.allocator.give(block);
    }

    fn begin_scrub(&mut self) -> bool {
        let Some(piece) = self.allocator.take_dirty() else { return false };
        let ranges: Vec<_> = piece.ranges().collect();
        assert_eq!(ranges.iter().map(|range| range.end - range.start).sum::<u64>(), piece.bytes);
        for range in ranges {
            assert!(self.live.iter().all(|block| !overlap(&range, &extent(block))), "a leased byte is scrubbed");
        }
        self.scrubbing.push(piece);
        true
    }

    fn finish_scrub(&mut self) {
        if let Some(piece) = self.scrubbing.pop() {
            piece.ranges().for_each(|range| self.mark(range, false));
            self.allocator.give_clean(piece);
        }
    }

    fn scrub_all(&mut self) {
        while !self.scrubbing.is_empty() || self.begin_scrub() {
            self.finish_scrub();
        }
    }

    fn check_new(&self, block: &Block, bytes: usize) {
        let range = extent(block);
        assert_eq!(range.start % LINE_BYTES as u64, 0);
        assert!(block.charge >= bytes as u64 && block.charge < bytes.max(1) as u64 + LINE_BYTES as u64);
        assert!(self.live.iter().all(|other| !overlap(&range, &extent(other))), "{block:?} overlaps another lease");
        assert!(self.scrubbing.iter().flat_map(DirtyPiece::ranges).all(|other| !overlap(&range, &other)));
        assert!(self.committed.iter().any(|there| there.start <= range.start && range.end <= there.end));
        let clean = range.start + block.stale.min(block.charge)..range.end;
        assert!(!self.is_written(clean), "{block:?} has old data where it says it has none");
    }

    fn check_accounts(&self) {
        let in_use: u64 = self.live.iter().map(|block| block.charge).sum();
        assert_eq!((self.allocator.in_use(), self.allocator.leases()), (in_use, self.live.len() as u64));
        assert!(self.allocator.high_water() >= in_use);
        let committed: u64 = self.committed.iter().map(|range| range.end - range.start).sum();
        let (dirty, arenas, _) = self.allocator.regions.count();
        assert_eq!((self.allocator.committed(), u64::from(arenas) * ARENA_BYTES as u64), (committed, committed));
        assert_eq!(self.allocator.dirty(), dirty + self.allocator.slabs.count_dirty_bytes());
    }

    fn mark(&mut self, range: Range<u64>, written: bool) {
        self.written[range.start as usize / LINE_BYTES..range.end as usize / LINE_BYTES].fill(written);
    }

    fn is_written(&self, range: Range<u64>) -> bool {
        self.written[range.start as usize / LINE_BYTES..range.end as usize / LINE_BYTES].contains(&true)
    }
}

fn extent(block: &Block) -> Range<u64> {
    block.offset..block.offset + block.charge
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[derive(Debug, Clone)]
enum Step {
    Take(usize),
    Give(usize),
    BeginScrub,
    FinishScrub,
    Retire,
    SetLimit(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..20_000).prop_map(Step::Take),
        3 => (0usize..2_100_000).prop_map(Step::Take),
        2 => (2_000_000usize..9_000_000).prop_map(Step::Take),
        9 => any::<usize>().prop_map(Step::Give),
        2 => Just(Step::BeginScrub),
        2 => Just(Step::FinishScrub),
        1 => Just(Step::Retire),
        1 => (1u64..16 * MIB).prop_map(Step::SetLimit),
    ]
}

fn perform(model: &mut Model, step: Step) {
    match step {
        Step::Take(bytes) => {
            let before = model.allocator.in_use();
            let _: Result<(), Shortage> = model.take(bytes);
            let limit = model.allocator.limit();
            assert!(model.allocator.in_use() <= limit.max(before), "over the limit");
        }
        Step::Give(pick) if !model.live.is_empty() => model.give(pick % model.live.len()),
        Step::Give(_) => {}
        Step::BeginScrub => _ = model.begin_scrub(),
        Step::FinishScrub => model.finish_scrub(),
        Step::Retire => _ = model.retire(1),
        Step::SetLimit(limit) => model.allocator.set_limit(limit),
    }
    model.check_accounts();
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn whatever_happens_leases_never_overlap_and_every_byte_comes_back(
        limit in 1u64..24 * MIB,
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 12 } else { 160 }),
    ) {
        let mut model = Model::new(limit);
        for step in steps {
            perform(&mut model, step);
        }
        while !model.live.is_empty() {
            model.give(0);
        }
        model.scrub_all();
        model.check_accounts();
        prop_assert_eq!((model.allocator.in_use(), model.allocator.dirty()), (0, 0));
        prop_assert!(!model.written.contains(&true), "old data is left after everything was scrubbed");
        // with nothing leased, the whole limit can be leased at once, however memory was cut before
        let whole = model.allocator.limit() as usize / LINE_BYTES * LINE_BYTES;
        prop_assert!(whole == 0 || model.take(whole).is_ok());
        while !model.live.is_empty() {
            model.give(0);
        }
        while model.retire(1) {}
        prop_assert_eq!(model.allocator.committed(), 0);
    }
}

#[test]
fn a_lease_of_several_arenas_lies_in_one_row() {
    let mut model = Model::new(64 * MIB);
    model.take(16 << 20).unwrap();
    model.take((16 << 20) + 1).unwrap();
    assert_eq!(model.allocator.committed(), 34 * MIB);
    model.give(0);
    model.take(15 << 20).unwrap();
    assert_eq!(model.allocator.committed(), 34 * MIB, "the free row serves a slightly smaller lease");
}

#[test]
fn freed_rows_make_room_for_small_leases_and_the_other_way_round() {
    let mut model = Model::new(8 * MIB);
    model.take(8 << 20).unwrap();
    model.give(0);
    for _ in 0..100 {
        model.take(4096).unwrap();
    }
    while !model.live.is_empty() {
        model.give(0);
    }
    model.take(8 << 20).unwrap();
}

#[test]
fn the_limit_counts_the_bytes_asked_for_in_whole_lines() {
    let mut model = Model::new(1000);
    model.take(900).unwrap();
    assert_eq!(model.allocator.in_use(), 960);
    assert_eq!(model.take(64), Err(Shortage::Limit));
    assert_eq!(model.take(usize::MAX), Err(Shortage::Limit));
    model.give(0);
    model.take(0).unwrap();
    assert_eq!(model.allocator.in_use(), 64);
}

#[test]
fn a_lowered_limit_takes_nothing_away_and_refuses_until_enough_has_come_back() {
    let mut model = Model::new(8 * MIB);
    for _ in 0..3 {
        model.take(2 << 20).unwrap();
    }
    model.allocator.set_limit(3 * MIB);
    assert_eq!(model.take(64), Err(Shortage::Limit));
    assert_eq!((model.live.len(), model.allocator.excess_arenas()), (3, 1));
    model.give(0);
    model.give(0);
    model.take(64).unwrap();
}

#[test]
fn a_lone_lease_that_comes_and_goes_does_not_cut_a_span_each_time() {
    let mut model = Model::new(8 * MIB);
    model.take(3000).unwrap();
    let first = model.live[0].offset;
    for _ in 0..10 {
        model.give(0);
        model.take(3000).unwrap();
        assert_eq!(model.live[0].offset, first);
    }
}

#[test]
fn spans_of_one_class_are_cut_again_for_another_once_they_are_empty() {
    let mut model = Model::new(2 * MIB);
    for size in [300, 5000, 12_000, 1000] {
        let mut count = 0;
        while model.take(size).is_ok() {
            count += 1;
        }
        assert!(count * size > (2 << 20) * 3 / 5, "{count} leases of {size} bytes fill most of two MiB");
        while !model.live.is_empty() {
            model.give(0);
        }
    }
}

#[test]
fn a_span_whose_tail_is_being_scrubbed_goes_to_nobody_else() {
    let mut model = Model::new(2 * MIB);
    model.take(2 << 20).unwrap();
    model.give(0);
    // 12 blocks of 2560 bytes leave a tail of 2048 bytes, dirty from the lease before
    (0..12).for_each(|_| model.take(2560).unwrap());
    while model.scrubbing.last().is_none_or(|piece| piece.bytes != 2048) {
        model.finish_scrub();
        assert!(model.begin_scrub(), "the tail is scrubbed even while all blocks are leased");
    }
    while !model.live.is_empty() {
        model.give(0);
    }
    model.allocator.drain_reserves();
    assert_eq!(model.allocator.take(2 << 20).unwrap_err(), Shortage::Arenas(1));
    model.finish_scrub();
    model.take(2 << 20).unwrap();
}
