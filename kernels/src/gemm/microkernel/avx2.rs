//! The innermost loop with AVX2 and FMA: twelve accumulators of eight sums, two loads of B and six broadcasts of A a step.
//! The sums of a full tile stay in registers from the bias to the stored result. Only the driver reaches it.

use std::arch::x86_64::{
    __m256, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_max_ps, _mm256_min_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
};

use super::{Microkernel, PANEL_COLUMNS, ROW_STRIDE};
use crate::float::Element;
use crate::gemm::finish::{Finish, Place, Tile};
use crate::isa::Avx2;

/// Sums of some rows of one panel.
type Sums<const ROWS: usize> = [[__m256; 2]; ROWS];

impl Microkernel for Avx2 {
    #[inline(always)]
    fn accumulate<E: Element, const ROWS: usize, const PANELS: usize>(
        self,
        a: &[f32],
        b: [&[E]; PANELS],
        sums: &mut [Tile; PANELS],
    ) {
        // SAFETY: `self` proves the features.
        unsafe { accumulate::<E, ROWS, PANELS>(a, b, sums) }
    }

    #[inline(always)]
    fn tile<E: Element>(
        self,
        place: Place,
        a: &[f32],
        b: &[f32],
        from: Option<&[f32; PANEL_COLUMNS]>,
        tile: &mut Tile,
        finish: Option<&mut Finish<'_, E>>,
    ) {
        // SAFETY: `self` proves the features.
        unsafe {
            match place.rows {
                1 => tile_rows::<E, 1>(self, place, a, b, from, tile, finish),
                2 => tile_rows::<E, 2>(self, place, a, b, from, tile, finish),
                3 => tile_rows::<E, 3>(self, place, a, b, from, tile, finish),
                4 => tile_rows::<E, 4>(self, place, a, b, from, tile, finish),
                5 => tile_rows::<E, 5>(self, place, a, b, from, tile, finish),
                _ => tile_rows::<E, 6>(self, place, a, b, from, tile, finish),
            }
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
fn accumulate<E: Element, const ROWS: usize, const PANELS: usize>(
    a: &[f32],
    b: [&[E]; PANELS],
    sums: &mut [Tile; PANELS],
) {
    let mut registers: [Sums<ROWS>; PANELS] = std::array::from_fn(|panel| load(&sums[panel]));
    multiply_add::<E, ROWS, PANELS>(a, b, &mut registers);
    for (registers, sums) in registers.iter().zip(sums) {
        keep(registers, sums);
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
fn tile_rows<E: Element, const ROWS: usize>(
    avx2: Avx2,
    place: Place,
    a: &[f32],
    b: &[f32],
    from: Option<&[f32; PANEL_COLUMNS]>,
    tile: &mut Tile,
    finish: Option<&mut Finish<'_, E>>,
) {
    let mut registers = [match from {
        Some(from) => [load_row(from); ROWS],
        None => load(tile),
    }];
    if let Some(finish) = &finish {
        prefetch::<E, ROWS>(finish, place);
    }
    multiply_add::<f32, ROWS, 1>(a, [b], &mut registers);
    let [registers] = registers;
    match finish {
        None => keep(&registers, tile),
        Some(finish) => match finish.bounds {
            Some(bounds) if place.columns == PANEL_COLUMNS => store_full(&registers, finish, bounds, place.at),
            _ => {
                keep(&registers, tile);
                finish.store(avx2, tile, place);
            }
        },
    }
}

/// The loop over K.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn multiply_add<E: Element, const ROWS: usize, const PANELS: usize>(
    a: &[f32],
    b: [&[E]; PANELS],
    sums: &mut [Sums<ROWS>; PANELS],
) {
    let depth = b[0].len() / PANEL_COLUMNS;
    assert!(b.iter().all(|b| b.len() == depth * PANEL_COLUMNS), "panels of one depth");
    assert!(a.len() >= (ROWS - 1) * ROW_STRIDE + depth, "all rows of A");
    for k in 0..depth {
        for (sums, b) in sums.iter_mut().zip(b) {
            // SAFETY: k < depth, and each panel has `depth` times 16 elements.
            let b = unsafe {
                let b = b.as_ptr().add(k * PANEL_COLUMNS);
                [E::load_lanes(b), E::load_lanes(b.add(8))]
            };
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: row < ROWS and k < depth, and `a` has been checked to reach so far.
                let a = unsafe { _mm256_broadcast_ss(&*a.as_ptr().add(row * ROW_STRIDE + k)) };
                sums[0] = _mm256_fmadd_ps(a, b[0], sums[0]);
                sums[1] = _mm256_fmadd_ps(a, b[1], sums[1]);
            }
        }
    }
}

/// Asks for the lines that the tile will be stored to, while its sums are made.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn prefetch<E: Element, const ROWS: usize>(finish: &Finish<'_, E>, place: Place) {
    for row in 0..ROWS {
        let at = place.at + row * finish.stride;
        // A hint that cannot fault; `wrapping_add` makes no claim to stay within the slice.
        _mm_prefetch::<_MM_HINT_T0>(finish.out.as_ptr().wrapping_add(at).cast());
        if let Some(residual) = finish.residual {
            _mm_prefetch::<_MM_HINT_T0>(residual.as_ptr().wrapping_add(at).cast());
        }
    }
}

/// Residual, bounds and the way to memory of a tile with all its columns.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn store_full<E: Element, const ROWS: usize>(
    sums: &Sums<ROWS>,
    finish: &mut Finish<'_, E>,
    (min, max): (f32, f32),
    at: usize,
) {
    let (min, max) = (_mm256_set1_ps(min), _mm256_set1_ps(max));
    for (row, sums) in sums.iter().enumerate() {
        let at = at + row * finish.stride;
        let out = &mut finish.out[at..at + PANEL_COLUMNS];
        let mut sums = *sums;
        if let Some(residual) = finish.residual {
            let residual = &residual[at..at + PANEL_COLUMNS];
            // SAFETY: the slice has 16 elements.
            let residual = unsafe { [E::load_lanes(residual.as_ptr()), E::load_lanes(residual.as_ptr().add(8))] };
            sums = [_mm256_add_ps(sums[0], residual[0]), _mm256_add_ps(sums[1], residual[1])];
        }
        // The second operand comes through when one is NaN or both are zeros: so NaN stays.
        let bounded = sums.map(|sum| _mm256_min_ps(max, _mm256_max_ps(min, sum)));
        // SAFETY: the slice has 16 elements.
        unsafe {
            E::store_lanes(out.as_mut_ptr(), bounded[0]);
            E::store_lanes(out.as_mut_ptr().add(8), bounded[1]);
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load<const ROWS: usize>(tile: &Tile) -> Sums<ROWS> {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    for (sums, row) in sums.iter_mut().zip(tile) {
        *sums = load_row(row);
    }
    sums
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load_row(row: &[f32; PANEL_COLUMNS]) -> [__m256; 2] {
    // SAFETY: a row has 16 floats.
    unsafe { [_mm256_loadu_ps(row.as_ptr()), _mm256_loadu_ps(row.as_ptr().add(8))] }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn keep<const ROWS: usize>(sums: &Sums<ROWS>, tile: &mut Tile) {
    for (sums, row) in sums.iter().zip(tile) {
        // SAFETY: a row has 16 floats.
        unsafe {
            _mm256_storeu_ps(row.as_mut_ptr(), sums[0]);
            _mm256_storeu_ps(row.as_mut_ptr().add(8), sums[1]);
        }
    }
}
