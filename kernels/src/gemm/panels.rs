//! The right-hand side of products: B in panels of 16 columns, `[N/16][K][16]`, the last panel filled up with zeros.
//! Weights are packed once when a model is loaded and then shared; a B that is computed at run time is packed into
//! scratch. It never multiplies.

use half::f16;

use super::PANEL_COLUMNS;
use crate::float::{Element, Floats};
use crate::isa::{Instructions, Isa, Kernel};

/// How packed weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// As halves: half the memory traffic, rounded to nearest even.
    F16,
    /// As floats.
    F32,
}

/// B in panels, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Panels<'a> {
    depth: usize,
    columns: usize,
    values: Floats<'a>,
}

impl<'a> Panels<'a> {
    /// Panels of a B of `depth` rows and `columns` columns.
    ///
    /// # Panics
    ///
    /// When `values` has not [`panels_len`] elements.
    pub fn new(depth: usize, columns: usize, values: Floats<'a>) -> Self {
        assert_eq!(values.len(), panels_len(depth, columns), "panels of {depth} rows and {columns} columns");
        Panels { depth, columns, values }
    }

    /// K.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// N.
    pub fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn values(&self) -> Floats<'a> {
        self.values
    }
}

/// Elements of a B of `depth` rows and `columns` columns in panels.
pub fn panels_len(depth: usize, columns: usize) -> usize {
    columns.div_ceil(PANEL_COLUMNS) * depth * PANEL_COLUMNS
}

/// Packs a B in memory, `depth` rows of `columns` elements, into `to`, which has [`panels_len`] floats.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn pack_panels(isa: Isa, from: Floats<'_>, (depth, columns): (usize, usize), to: &mut [f32]) {
    assert!(from.len() == depth * columns && to.len() == panels_len(depth, columns), "a B of {depth} x {columns}");
    match from {
        Floats::F16(from) => isa.run(Pack { from, depth, columns, to }),
        Floats::F32(from) => isa.run(Pack { from, depth, columns, to }),
    }
}

struct Pack<'a, E> {
    from: &'a [E],
    depth: usize,
    columns: usize,
    to: &'a mut [f32],
}

impl<E: Element> Kernel for Pack<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let Pack { from, depth, columns, to } = self;
        for (panel, to) in to.chunks_exact_mut((depth * PANEL_COLUMNS).max(1)).enumerate() {
            let first = panel * PANEL_COLUMNS;
            let width = (columns - first).min(PANEL_COLUMNS);
            let (rows, _) = to.as_chunks_mut::<PANEL_COLUMNS>();
            for (k, to) in rows.iter_mut().enumerate() {
                let from = &from[k * columns + first..][..width];
                match <&[E; PANEL_COLUMNS]>::try_from(from) {
                    Ok(whole) => E::widen(isa, whole, to),
                    Err(_) => {
                        E::widen(isa, from, &mut to[..width]);
                        to[width..].fill(0.0);
                    }
                }
            }
        }
    }
}

/// Several Bs, one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PanelList<'a> {
    /// Packed at load.
    Packed(&'a [PackedWeights]),
    /// Packed by [`fill_panels`] during a run.
    Floats(&'a [f32]),
}

impl<'a> PanelList<'a> {
    /// B number `index`, `depth` by `columns`, in front of which lie Bs of `before` floats.
    pub(crate) fn panels(self, index: usize, before: usize, depth: usize, columns: usize) -> Panels<'a> {
        match self {
            PanelList::Packed(weights) => weights[index].panels(),
            PanelList::Floats(values) => {
                let values = &values[before..before + panels_len(depth, columns)];
                Panels::new(depth, columns, Floats::F32(values))
            }
        }
    }
}

/// Packs a B whose element (k, n) is `value(k, n)` into `to`, which has [`panels_len`] floats.
pub(crate) fn fill_panels(depth: usize, columns: usize, to: &mut [f32], value: impl Fn(usize, usize) -> f32) {
    fill(depth, columns, to, 0.0, value);
}

fn fill<T: Copy>(depth: usize, columns: usize, to: &mut [T], zero: T, value: impl Fn(usize, usize) -> T) {
    assert_eq!(to.len(), panels_len(depth, columns), "panels of {depth} rows and {columns} columns");
    for (row, to) in to.chunks_exact_mut(PANEL_COLUMNS).enumerate() {
        let (panel, k) = (row / depth, row % depth);
        for (column, to) in to.iter_mut().enumerate() {
            let n = panel * PANEL_COLUMNS + column;
            *to = if n < columns { value(k, n) } else { zero };
        }
    }
}

/// B in panels, owned: a layer's weights.
pub struct PackedWeights {
    depth: usize,
    columns: usize,
    storage: Storage,
    lines: Box<[CacheLine]>,
}

/// Keeps panels aligned, so that no load straddles two lines.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

impl PackedWeights {
    /// Packs a B of `depth` rows and `columns` columns whose element (k, n) is `value(k, n)`.
    pub fn pack(storage: Storage, depth: usize, columns: usize, value: impl Fn(usize, usize) -> f32) -> PackedWeights {
        let size = match storage {
            Storage::F16 => size_of::<f16>(),
            Storage::F32 => size_of::<f32>(),
        };
        let elements = panels_len(depth, columns);
        let mut lines = vec![CacheLine([0; 64]); (elements * size).div_ceil(64)].into_boxed_slice();
        let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut lines)[..elements * size];
        match storage {
            Storage::F16 => {
                fill(depth, columns, bytemuck::cast_slice_mut(bytes), f16::ZERO, |k, n| f16::from_f32(value(k, n)));
            }
            Storage::F32 => fill(depth, columns, bytemuck::cast_slice_mut(bytes), 0.0, value),
        }
        PackedWeights { depth, columns, storage, lines }
    }

    /// The panels.
    pub fn panels(&self) -> Panels<'_> {
        let elements = panels_len(self.depth, self.columns);
        let values = match self.storage {
            Storage::F16 => Floats::F16(&bytemuck::cast_slice(&self.lines)[..elements]),
            Storage::F32 => Floats::F32(&bytemuck::cast_slice(&self.lines)[..elements]),
        };
        Panels { depth: self.depth, columns: self.columns, values }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

impl std::fmt::Debug for PackedWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackedWeights({}x{} {:?})", self.depth, self.columns, self.storage)
    }
}
