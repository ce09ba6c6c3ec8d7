//! How a step's rows are shared among compute threads: who is free takes the next tile, which owns its part of the output. Tiles
//! depend on the number of threads, what is computed in them never does. The steps with enough work use it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::compute_threads::ComputeThreads;
use super::step::Tiles;
use crate::batch::StopPoint;
use crate::error::ExecError;

/// Elementary operations below which a step stays on the calling thread: about what waking another one costs.
const SHARED_WORK: usize = 1 << 20;

/// Tiles for each thread, so that one that is held up leaves its work to others.
const TILES_A_THREAD: usize = 4;

/// What scratch is aligned to.
const SCRATCH_ALIGNMENT: usize = 64;

/// Rows that can be computed by several threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedTiles {
    rows: usize,
    tile: usize,
    /// How many threads can take part.
    threads: usize,
}

/// How many rows a kernel likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Granules {
    /// Below this many rows a kernel loses speed.
    pub good: usize,
    /// Tiles are multiples of this.
    pub least: usize,
}

impl Granules {
    /// For kernels that do not care.
    pub(super) const ANY: Granules = Granules { good: 1, least: 1 };
}

impl SharedTiles {
    /// `rows` rows of `row_work` elementary operations for up to `threads` threads. The tiles are no larger than those of
    /// [`Tiles::new`], so that a run can stop as soon.
    pub(super) fn new(threads: usize, rows: usize, row_work: usize, granules: Granules) -> SharedTiles {
        let whole = Tiles::new(rows, row_work, granules.good.max(granules.least));
        if threads < 2 || rows.saturating_mul(row_work) < SHARED_WORK || rows <= granules.least {
            return SharedTiles { rows, tile: whole.tile, threads: 1 };
        }
        let most = rows.div_ceil(granules.least);
        let wanted = (rows / granules.good.max(1)).min(threads * TILES_A_THREAD) / threads * threads;
        let count = wanted.max(threads).min(most);
        let tile = rows.div_ceil(count).next_multiple_of(granules.least).min(whole.tile);
        SharedTiles { rows, tile, threads: threads.min(rows.div_ceil(tile)) }
    }

    /// The most rows of a tile.
    pub(super) fn tile(&self) -> usize {
        self.tile
    }

    /// Bytes of scratch where each thread needs `bytes`.
    pub(super) fn scratch_bytes(&self, bytes: usize) -> usize {
        bytes.checked_next_multiple_of(SCRATCH_ALIGNMENT).map_or(usize::MAX, |bytes| bytes.saturating_mul(self.threads))
    }

    /// Calls `run` once for each tile, with its part of `output` and with scratch that nobody else has meanwhile; asks `stop`
    /// in between.
    pub(super) fn each(
        &self,
        threads: &ComputeThreads,
        stop: &mut dyn StopPoint,
        output: &mut [u8],
        scratch: &mut [u8],
        run: impl Fn(Range<usize>, &mut [u8], &mut [u8]) -> Result<(), ExecError> + Sync,
    ) -> Result<(), ExecError> {
        let row_bytes = output.len() / self.rows.max(1);
        let queue = Queue { state: Mutex::new((0, output)), row_bytes, tiles: *self, ended: AtomicBool::new(false) };
        let part = scratch.len() / self.threads / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
        if self.threads == 1 {
            return queue.work(scratch, &run, Some(stop));
        }
        let (own, others) = scratch.split_at_mut(part);
        let others = Mutex::new((self.threads - 1, others));
        let failure = Mutex::new(None);
        let helping = || {
            let scratch = {
                let mut others = others.lock();
                let (left, rest) = &mut *others;
                if *left == 0 {
                    return;
                }
                *left -= 1;
                let (scratch, behind) = std::mem::take(rest).split_at_mut(part);
                *rest = behind;
                scratch
            };
            if let Err(error) = queue.work(scratch, &run, None) {
                *failure.lock() = Some(error);
            }
        };
        let own = threads.run(&helping, || queue.work(own, &run, Some(stop)));
        own.and(failure.into_inner().map_or(Ok(()), Err))
    }
}

/// Computes some rows into their part of the output, with scratch.
type TileRun<'r> = dyn Fn(Range<usize>, &mut [u8], &mut [u8]) -> Result<(), ExecError> + Sync + 'r;

/// The tiles that nobody has taken yet.
struct Queue<'a> {
    /// The next row, and the output from there on.
    state: Mutex<(usize, &'a mut [u8])>,
    row_bytes: usize,
    tiles: SharedTiles,
    /// No more tiles are to be taken: the run is stopped or has failed.
    ended: AtomicBool,
}

impl<'a> Queue<'a> {
    fn take(&self) -> Option<(Range<usize>, &'a mut [u8])> {
        if self.ended.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        let (first, rest) = &mut *state;
        let rows = *first..(*first + self.tiles.tile).min(self.tiles.rows);
        if rows.is_empty() {
            return None;
        }
        *first = rows.end;
        let (part, behind) = std::mem::take(rest).split_at_mut(rows.len() * self.row_bytes);
        *rest = behind;
        Some((rows, part))
    }

    /// Takes tiles until there are none; with `stop` asks it in between.
    fn work(
        &self,
        scratch: &mut [u8],
        run: &TileRun<'_>,
        mut stop: Option<&mut dyn StopPoint>,
    ) -> Result<(), ExecError> {
        while let Some((rows, output)) = self.take() {
            let last = rows.end == self.tiles.rows;
            let mut result = run(rows, output, scratch);
            if result.is_ok() && !last && stop.as_mut().is_some_and(|stop| stop.should_stop()) {
                result = Err(ExecError::Stopped);
            }
            if result.is_err() {
                self.ended.store(true, Ordering::Relaxed);
                return result;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_all_rows_once_for_any_number_of_threads() {
        for count in 1..4 {
            let threads = ComputeThreads::start(count, &[]).unwrap();
            for rows in [0, 1, 5, 6, 7, 49, 196, 1000] {
                for granules in [Granules::ANY, Granules { good: 96, least: 6 }, Granules { good: 8, least: 8 }] {
                    let tiles = SharedTiles::new(count, rows, SHARED_WORK, granules);
                    let mut output = vec![0u8; rows * 2];
                    let mut scratch = vec![0u8; tiles.scratch_bytes(10)];
                    let run = |rows: Range<usize>, output: &mut [u8], scratch: &mut [u8]| {
                        assert!(output.len() == rows.len() * 2 && scratch.len() >= 10 && rows.len() <= tiles.tile());
                        assert!(rows.start.is_multiple_of(granules.least), "{rows:?}");
                        output.iter_mut().for_each(|byte| *byte += 1);
                        Ok(())
                    };
                    tiles.each(&threads, &mut || false, &mut output, &mut scratch, run).unwrap();
                    assert!(output.iter().all(|byte| *byte == 1), "{rows} rows, {count} threads");
                }
            }
        }
    }

    #[test]
    fn little_work_stays_on_one_thread_and_much_is_shared_evenly() {
        let gemm = Granules { good: 96, least: 6 };
        assert_eq!(SharedTiles::new(2, 100, 100, gemm).threads, 1);
        let tiles = SharedTiles::new(2, 196, 1 << 18, gemm);
        assert_eq!((tiles.tile, tiles.threads), (102, 2));
        assert_eq!(SharedTiles::new(2, 784, 1 << 16, gemm).tile, 102);
        assert_eq!(SharedTiles::new(2, 49, 1 << 20, gemm).tile, 30);
    }

    #[test]
    fn a_stop_or_a_failure_ends_the_step_on_all_threads() {
        let threads = ComputeThreads::start(2, &[]).unwrap();
        let tiles = SharedTiles::new(2, 1000, SHARED_WORK, Granules::ANY);
        let mut output = vec![0u8; 1000];
        let stopped = tiles.each(&threads, &mut || true, &mut output, &mut [], |_, _, _| Ok(()));
        assert_eq!(stopped, Err(ExecError::Stopped));
        let fail = |rows: Range<usize>, _: &mut [u8], _: &mut [u8]| match rows.contains(&400) {
            true => Err(ExecError::misfit("row 400")),
            false => Ok(()),
        };
        let failed = tiles.each(&threads, &mut || false, &mut output, &mut [], fail);
        assert_eq!(failed, Err(ExecError::misfit("row 400")));
    }
}
