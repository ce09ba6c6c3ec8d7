//! One step of a lowered plan: a kernel with everything about it decided, waiting for its tensors. Steps hold no tensors
//! between runs. The plan hands them bytes; the step files under `steps` implement them.

use std::fmt::Debug;
use std::ops::Range;

use insula_core::DType;
use insula_kernels::{Floats, FloatsMut};
use smallvec::SmallVec;

use super::compute_threads::ComputeThreads;
use super::tensor;
use crate::batch::StopPoint;
use crate::error::ExecError;

/// A kernel call.
pub(super) trait Step: Send + Sync + Debug {
    /// Bytes of scratch that it needs.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Bytes that it takes itself, without weights.
    fn memory_bytes(&self) -> usize {
        size_of_val(self)
    }

    /// Computes the whole output.
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError>;
}

/// What a step reads and writes.
#[derive(Debug)]
pub(super) struct StepTensors<'a> {
    /// The operands, then the residual if there is one.
    pub inputs: SmallVec<[&'a [u8]; 3]>,
    /// The whole output.
    pub output: &'a mut [u8],
    /// At least as many bytes as the step asked for, aligned to 64, of any content.
    pub scratch: &'a mut [u8],
    /// What a large step is shared among.
    pub threads: &'a ComputeThreads,
}

impl<'a> StepTensors<'a> {
    /// Operand `index`.
    pub(super) fn input(&self, index: usize) -> Result<&'a [u8], ExecError> {
        self.inputs.get(index).copied().ok_or_else(|| ExecError::misfit(format!("operand {index} is missing")))
    }

    /// Operand `index` as floats.
    pub(super) fn floats(&self, index: usize, dtype: DType) -> Result<Floats<'a>, ExecError> {
        tensor::floats(dtype, self.input(index)?)
    }

    /// Operand `index` as floats, if there is one.
    pub(super) fn residual(&self, index: usize, dtype: DType) -> Result<Option<Floats<'a>>, ExecError> {
        self.inputs.get(index).map(|bytes| tensor::floats(dtype, bytes)).transpose()
    }

    /// The output as floats.
    pub(super) fn output(&mut self, dtype: DType) -> Result<FloatsMut<'_>, ExecError> {
        tensor::floats_mut(dtype, self.output)
    }
}

/// Work between two questions to the stop point, in elementary operations: one to three milliseconds on a core of a server
/// CPU, well below the fair queue's slice.
const TILE_WORK: usize = 1 << 27;

/// How a step is cut so that a run can stop within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiles {
    /// Rows in all.
    pub rows: usize,
    /// Rows of a tile.
    pub tile: usize,
}

impl Tiles {
    /// Tiles of whole multiples of `granule` rows, each with about as much work as fits between two questions, where a row
    /// takes `row_work` elementary operations.
    pub(super) fn new(rows: usize, row_work: usize, granule: usize) -> Tiles {
        let most = (TILE_WORK / row_work.max(1)).max(1);
        let tile = (most / granule * granule).max(granule).min(rows.max(1));
        Tiles { rows, tile }
    }

    /// Calls `run` for each tile, in order; asks `stop` in between.
    pub(super) fn each(
        self,
        stop: &mut dyn StopPoint,
        mut run: impl FnMut(Range<usize>) -> Result<(), ExecError>,
    ) -> Result<(), ExecError> {
        let mut first = 0;
        while first < self.rows {
            if first > 0 && stop.should_stop() {
                return Err(ExecError::Stopped);
            }
            let end = (first + self.tile).min(self.rows);
            run(first..end)?;
            first = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_all_rows_once_and_ask_in_between() {
        for (rows, work, granule) in
            [(1, 1, 1), (1000, TILE_WORK / 10, 6), (7, TILE_WORK * 3, 1), (100, TILE_WORK, 96), (0, 5, 1)]
        {
            let (mut asked, mut ran) = (0, Vec::new());
            let mut stop = || {
                asked += 1;
                false
            };
            let run = |tile: Range<usize>| {
                ran.push(tile);
                Ok(())
            };
            Tiles::new(rows, work, granule).each(&mut stop, run).unwrap();
            assert_eq!(ran.iter().cloned().flatten().collect::<Vec<_>>(), (0..rows).collect::<Vec<_>>());
            assert_eq!(asked, ran.len().saturating_sub(1));
        }
    }

    #[test]
    fn a_stop_ends_the_step_after_its_tile() {
        let mut ran = 0;
        let ended = Tiles { rows: 10, tile: 3 }.each(&mut || true, |_| {
            ran += 1;
            Ok(())
        });
        assert_eq!((ended, ran), (Err(ExecError::Stopped), 1));
    }
}
