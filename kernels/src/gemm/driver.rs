//! Cuts a product into blocks that fit the caches and walks them. The cuts change which memory is hot, never the order
//! of a sum. [`super::Gemm`] calls it.

use std::ops::Range;

use super::finish::{Finish, Place, Tile};
use super::{DEPTH_BLOCK, Gemm, PANEL_COLUMNS, ROW_STRIDE, RowSource, TILE_ROWS};
use crate::float::{Element, Floats};
use crate::isa::{Instructions, Kernel};

/// Rows of a block of A times its depth blocks: about 400 KB of packed A.
const MOST_PACKED_ROWS: usize = 384;

/// Rows of a block where K takes several depth blocks.
const BLOCK_ROWS: usize = 192;

/// Panels of a block of C whose sums wait in memory between depth blocks.
const BLOCK_PANELS: usize = 64;

/// Floats of a widened panel.
const PANEL_FLOATS: usize = DEPTH_BLOCK * PANEL_COLUMNS;

/// How a product is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocking {
    rows: usize,
    depth_step: usize,
    depth_blocks: usize,
    panels: usize,
}

impl Blocking {
    pub(super) fn new(rows: usize, depth: usize, columns: usize) -> Blocking {
        let depth_blocks = depth.div_ceil(DEPTH_BLOCK).max(1);
        let most = if depth_blocks == 1 { MOST_PACKED_ROWS } else { BLOCK_ROWS };
        // Equal blocks, so that the last is not a sliver.
        let rows = rows.div_ceil(rows.div_ceil(most).max(1)).next_multiple_of(TILE_ROWS);
        let depth_step = depth.div_ceil(depth_blocks).next_multiple_of(4).min(DEPTH_BLOCK);
        Blocking { rows, depth_step, depth_blocks, panels: columns.div_ceil(PANEL_COLUMNS) }
    }

    /// Enough for any number of rows up to `rows`.
    pub(super) fn scratch_floats(rows: usize, depth: usize, columns: usize) -> usize {
        let depth_blocks = depth.div_ceil(DEPTH_BLOCK).max(1);
        let most = if depth_blocks == 1 { MOST_PACKED_ROWS } else { BLOCK_ROWS };
        let rows = rows.min(most).next_multiple_of(TILE_ROWS);
        let packed_rows = (rows * depth_blocks).min(MOST_PACKED_ROWS).max(TILE_ROWS * depth_blocks);
        let waiting = if depth_blocks == 1 {
            0
        } else {
            rows * PANEL_COLUMNS * columns.div_ceil(PANEL_COLUMNS).min(BLOCK_PANELS)
        };
        packed_rows * ROW_STRIDE + PANEL_FLOATS + waiting
    }

    /// Whether a block's rows are packed over all of K before the panels are walked.
    fn whole_depth(&self) -> bool {
        self.rows * self.depth_blocks <= MOST_PACKED_ROWS
    }
}

/// One call of [`Gemm::run`] with its types resolved.
pub(super) struct Run<'a, E> {
    pub gemm: &'a Gemm<'a>,
    pub blocking: Blocking,
    pub rows: Range<usize>,
    pub source: &'a dyn RowSource,
    pub residual: Option<&'a [E]>,
    pub out: &'a mut [E],
    pub stride: usize,
    pub offset: usize,
    pub scratch: &'a mut [f32],
}

impl<E: Element> Kernel for Run<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let Blocking { depth_blocks, rows, .. } = self.blocking;
        let packed_rows = (rows * depth_blocks).min(MOST_PACKED_ROWS).max(TILE_ROWS * depth_blocks);
        let (packed, rest) = self.scratch.split_at_mut(packed_rows * ROW_STRIDE);
        let (panel, waiting) = rest.split_at_mut(PANEL_FLOATS);
        let activation = self.gemm.activation;
        let bounds = activation.bounds();
        let finish = Finish { activation, bounds, residual: self.residual, out: self.out, stride: self.stride };
        let mut walk = Walk {
            gemm: self.gemm,
            source: self.source,
            blocking: self.blocking,
            first_row: self.rows.start,
            offset: self.offset,
            finish,
            packed,
            panel,
            waiting: waiting.as_chunks_mut::<PANEL_COLUMNS>().0.as_chunks_mut::<TILE_ROWS>().0,
        };
        let mut first = self.rows.start;
        while first < self.rows.end {
            let block = first..(first + rows).min(self.rows.end);
            first = block.end;
            if block.len() <= TILE_ROWS {
                walk.single_tile(isa, block);
            } else if walk.blocking.whole_depth() {
                walk.panels_outside(isa, block);
            } else {
                walk.depth_outside(isa, block);
            }
        }
    }
}

struct Walk<'a, E> {
    gemm: &'a Gemm<'a>,
    source: &'a dyn RowSource,
    blocking: Blocking,
    /// The row that lies at `offset` of the destination.
    first_row: usize,
    offset: usize,
    finish: Finish<'a, E>,
    packed: &'a mut [f32],
    panel: &'a mut [f32],
    waiting: &'a mut [Tile],
}

/// One depth block of one panel, for all tiles of a block of rows.
struct Pass {
    rows: Range<usize>,
    panel: usize,
    depth_block: usize,
    /// Where the packed rows of this depth block begin.
    packed: usize,
    /// Where the sums that wait between depth blocks lie.
    waiting: usize,
}

impl<E: Element> Walk<'_, E> {
    /// All of K packed: each panel is widened once and finished at once.
    #[inline(always)]
    fn panels_outside<I: Instructions>(&mut self, isa: I, rows: Range<usize>) {
        let block_floats = rows.len().next_multiple_of(TILE_ROWS) * ROW_STRIDE;
        for depth_block in 0..self.blocking.depth_blocks {
            self.pack(rows.clone(), depth_block, depth_block * block_floats);
        }
        for panel in 0..self.blocking.panels {
            for depth_block in 0..self.blocking.depth_blocks {
                let packed = depth_block * block_floats;
                self.pass(isa, Pass { rows: rows.clone(), panel, depth_block, packed, waiting: 0 });
            }
        }
    }

    /// One depth block packed at a time: the sums of a block of panels wait in memory.
    #[inline(always)]
    fn depth_outside<I: Instructions>(&mut self, isa: I, rows: Range<usize>) {
        let tiles = rows.len().div_ceil(TILE_ROWS);
        for first in (0..self.blocking.panels).step_by(BLOCK_PANELS) {
            for depth_block in 0..self.blocking.depth_blocks {
                self.pack(rows.clone(), depth_block, 0);
                for panel in first..(first + BLOCK_PANELS).min(self.blocking.panels) {
                    let waiting = (panel - first) * tiles;
                    self.pass(isa, Pass { rows: rows.clone(), panel, depth_block, packed: 0, waiting });
                }
            }
        }
    }

    fn depth_range(&self, depth_block: usize) -> Range<usize> {
        let depth = self.gemm.panels.depth();
        let begin = (depth_block * self.blocking.depth_step).min(depth);
        begin..(begin + self.blocking.depth_step).min(depth)
    }

    fn pack(&mut self, rows: Range<usize>, depth_block: usize, at: usize) {
        let depth = self.depth_range(depth_block);
        self.source.pack(rows, depth, &mut self.packed[at..], ROW_STRIDE);
    }

    fn bias(&self, panel: usize) -> [f32; PANEL_COLUMNS] {
        let mut padded = [0.0; PANEL_COLUMNS];
        if let Some(bias) = self.gemm.bias {
            let bias = &bias[panel * PANEL_COLUMNS..];
            let columns = bias.len().min(PANEL_COLUMNS);
            padded[..columns].copy_from_slice(&bias[..columns]);
        }
        padded
    }

    /// Where the sums of `panel` for `row` go.
    #[inline(always)]
    fn place(&self, row: usize, panel: usize) -> usize {
        self.offset + (row - self.first_row) * self.finish.stride + panel * PANEL_COLUMNS
    }

    fn columns(&self, panel: usize) -> usize {
        (self.gemm.panels.columns() - panel * PANEL_COLUMNS).min(PANEL_COLUMNS)
    }

    #[inline(always)]
    fn pass<I: Instructions>(&mut self, isa: I, pass: Pass) {
        let corner = self.place(pass.rows.start, pass.panel);
        let depth = self.depth_range(pass.depth_block);
        let (bias, columns) = (self.bias(pass.panel), self.columns(pass.panel));
        let begin = pass.panel * self.gemm.panels.depth() + depth.start;
        let elements = begin * PANEL_COLUMNS..(begin + depth.len()) * PANEL_COLUMNS;
        let b = match self.gemm.panels.values() {
            Floats::F32(values) => &values[elements],
            Floats::F16(values) => {
                let widened = &mut self.panel[..elements.len()];
                isa.widen(&values[elements], widened);
                &*widened
            }
        };
        let from = (pass.depth_block == 0).then_some(&bias);
        let last = pass.depth_block + 1 == self.blocking.depth_blocks;
        let mut fresh = [[0.0; PANEL_COLUMNS]; TILE_ROWS];
        for (index, first) in pass.rows.clone().step_by(TILE_ROWS).enumerate() {
            let at = corner + (first - pass.rows.start) * self.finish.stride;
            let place = Place { rows: (pass.rows.end - first).min(TILE_ROWS), columns, at };
            let a = &self.packed[pass.packed + index * TILE_ROWS * ROW_STRIDE..];
            let tile =
                if self.blocking.depth_blocks > 1 { &mut self.waiting[pass.waiting + index] } else { &mut fresh };
            isa.tile(place, a, b, from, tile, if last { Some(&mut self.finish) } else { None });
        }
    }

    /// At most six rows: panels are used once, so they are read as they are stored, several at a time to keep the
    /// arithmetic units busy with few rows.
    #[inline(always)]
    fn single_tile<I: Instructions>(&mut self, isa: I, rows: Range<usize>) {
        for depth_block in 0..self.blocking.depth_blocks {
            self.pack(rows.clone(), depth_block, depth_block * TILE_ROWS * ROW_STRIDE);
        }
        match self.gemm.panels.values() {
            Floats::F16(values) => self.few_rows(isa, rows, values),
            Floats::F32(values) => self.few_rows(isa, rows, values),
        }
    }

    #[inline(always)]
    fn few_rows<I: Instructions, W: Element>(&mut self, isa: I, rows: Range<usize>, weights: &[W]) {
        let mut panel = 0;
        while panel < self.blocking.panels {
            let left = self.blocking.panels - panel;
            panel += match rows.len() {
                1 if left >= 4 => self.group::<I, W, 1, 4>(isa, rows.start, panel, weights),
                1 => self.group::<I, W, 1, 1>(isa, rows.start, panel, weights),
                2 if left >= 2 => self.group::<I, W, 2, 2>(isa, rows.start, panel, weights),
                2 => self.group::<I, W, 2, 1>(isa, rows.start, panel, weights),
                3 => self.group::<I, W, 3, 1>(isa, rows.start, panel, weights),
                4 => self.group::<I, W, 4, 1>(isa, rows.start, panel, weights),
                5 => self.group::<I, W, 5, 1>(isa, rows.start, panel, weights),
                _ => self.group::<I, W, 6, 1>(isa, rows.start, panel, weights),
            };
        }
    }

    /// Finishes `PANELS` panels from number `panel` on and says how many that were.
    #[inline(always)]
    fn group<I: Instructions, W: Element, const ROWS: usize, const PANELS: usize>(
        &mut self,
        isa: I,
        row: usize,
        panel: usize,
        weights: &[W],
    ) -> usize {
        let mut sums: [Tile; PANELS] = std::array::from_fn(|i| [self.bias(panel + i); TILE_ROWS]);
        for depth_block in 0..self.blocking.depth_blocks {
            let depth = self.depth_range(depth_block);
            let b: [&[W]; PANELS] = std::array::from_fn(|i| {
                let begin = (panel + i) * self.gemm.panels.depth() + depth.start;
                &weights[begin * PANEL_COLUMNS..(begin + depth.len()) * PANEL_COLUMNS]
            });
            let a = &self.packed[depth_block * TILE_ROWS * ROW_STRIDE..];
            isa.accumulate::<W, ROWS, PANELS>(a, b, &mut sums);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let at = self.place(row, panel + i);
            let place = Place { rows: ROWS, columns: self.columns(panel + i), at };
            self.finish.store(isa, sums, place);
        }
        PANELS
    }
}
