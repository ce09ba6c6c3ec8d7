//! Slices of floats whose width, half or single, is known only at run time, and the element trait behind them. Kernels
//! compute in single precision whatever the storage; integers and byte strings are not here. All kernels take these.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{self, __m256};

use bytemuck::Pod;
use half::{bf16, f16};

use crate::isa::Instructions;

/// How many floats a kernel widens at a time into a buffer on its stack.
pub(crate) const CHUNK: usize = 256;

/// Floats to read.
#[derive(Debug, Clone, Copy)]
pub enum Floats<'a> {
    /// Stored as halves.
    F16(&'a [f16]),
    /// Stored as single-precision floats.
    F32(&'a [f32]),
}

/// Floats to write.
#[derive(Debug)]
pub enum FloatsMut<'a> {
    /// Stored as halves.
    F16(&'a mut [f16]),
    /// Stored as single-precision floats.
    F32(&'a mut [f32]),
}

impl<'a> Floats<'a> {
    /// How many elements.
    pub fn len(&self) -> usize {
        match self {
            Floats::F16(values) => values.len(),
            Floats::F32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in `range`. Panics when it is out of bounds.
    pub fn range(&self, range: std::ops::Range<usize>) -> Floats<'a> {
        match self {
            Floats::F16(values) => Floats::F16(&values[range]),
            Floats::F32(values) => Floats::F32(&values[range]),
        }
    }

    /// Element `index`, widened. Panics when it is out of bounds.
    pub fn get(&self, index: usize) -> f32 {
        match self {
            Floats::F16(values) => values[index].to_f32(),
            Floats::F32(values) => values[index],
        }
    }
}

impl FloatsMut<'_> {
    /// How many elements.
    pub fn len(&self) -> usize {
        match self {
            FloatsMut::F16(values) => values.len(),
            FloatsMut::F32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same elements for a shorter time.
    pub fn reborrow(&mut self) -> FloatsMut<'_> {
        match self {
            FloatsMut::F16(values) => FloatsMut::F16(values),
            FloatsMut::F32(values) => FloatsMut::F32(values),
        }
    }
}

/// A float that kernels read and write as single-precision floats.
pub(crate) trait Widened: Pod {
    fn to_f32(self) -> f32;

    fn widen<I: Instructions>(isa: I, from: &[Self], to: &mut [f32]);

    fn narrow<I: Instructions>(isa: I, from: &[f32], to: &mut [Self]);

    /// The elements as floats: themselves, or widened into `buffer`, which is at least as long.
    fn read<'a, I: Instructions>(isa: I, from: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32];
}

/// One that microkernels load and store by eight.
pub(crate) trait Element: Widened {
    /// Eight elements, widened.
    ///
    /// # Safety
    ///
    /// The machine has AVX2, FMA and F16C, and `from` points to eight elements; no alignment is needed.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_lanes(from: *const Self) -> __m256;

    /// Stores eight elements, rounded to nearest, ties to even.
    ///
    /// # Safety
    ///
    /// The machine has AVX2, FMA and F16C, and `to` points to room for eight elements; no alignment is needed.
    #[cfg(target_arch = "x86_64")]
    unsafe fn store_lanes(to: *mut Self, lanes: __m256);
}

impl Widened for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn widen<I: Instructions>(_: I, from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    #[inline(always)]
    fn narrow<I: Instructions>(_: I, from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    #[inline(always)]
    fn read<'a, I: Instructions>(_: I, from: &'a [f32], _: &'a mut [f32]) -> &'a [f32] {
        from
    }
}

impl Element for f32 {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn load_lanes(from: *const f32) -> __m256 {
        // SAFETY: the caller vouches for eight elements.
        unsafe { x86_64::_mm256_loadu_ps(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn store_lanes(to: *mut f32, lanes: __m256) {
        // SAFETY: the caller vouches for room for eight elements.
        unsafe { x86_64::_mm256_storeu_ps(to, lanes) }
    }
}

impl Widened for f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }

    #[inline(always)]
    fn widen<I: Instructions>(isa: I, from: &[f16], to: &mut [f32]) {
        isa.widen(from, to);
    }

    #[inline(always)]
    fn narrow<I: Instructions>(isa: I, from: &[f32], to: &mut [f16]) {
        isa.narrow(from, to);
    }

    #[inline(always)]
    fn read<'a, I: Instructions>(isa: I, from: &'a [f16], buffer: &'a mut [f32]) -> &'a [f32] {
        let wide = &mut buffer[..from.len()];
        isa.widen(from, wide);
        wide
    }
}

impl Element for f16 {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn load_lanes(from: *const f16) -> __m256 {
        // SAFETY: the caller vouches for eight elements.
        unsafe { x86_64::_mm256_cvtph_ps(x86_64::_mm_loadu_si128(from.cast::<x86_64::__m128i>())) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn store_lanes(to: *mut f16, lanes: __m256) {
        let halves = x86_64::_mm256_cvtps_ph::<{ x86_64::_MM_FROUND_TO_NEAREST_INT }>(lanes);
        // SAFETY: the caller vouches for room for eight elements.
        unsafe { x86_64::_mm_storeu_si128(to.cast::<x86_64::__m128i>(), halves) }
    }
}

impl Widened for bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }

    #[inline(always)]
    fn widen<I: Instructions>(_: I, from: &[bf16], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f32::from_bits(u32::from(from.to_bits()) << 16);
        }
    }

    #[inline(always)]
    fn narrow<I: Instructions>(_: I, from: &[f32], to: &mut [bf16]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = bf16::from_f32(*from);
        }
    }

    #[inline(always)]
    fn read<'a, I: Instructions>(isa: I, from: &'a [bf16], buffer: &'a mut [f32]) -> &'a [f32] {
        let wide = &mut buffer[..from.len()];
        bf16::widen(isa, from, wide);
        wide
    }
}

/// Runs `$body` with `$x` bound to the typed slice inside a [`Floats`] and `$y` to that inside a [`FloatsMut`].
macro_rules! same_float_type {
    ($x:expr, $y:expr, |$a:ident, $b:ident| $body:expr) => {
        match ($x, $y) {
            (crate::float::Floats::F16($a), crate::float::FloatsMut::F16($b)) => $body,
            (crate::float::Floats::F32($a), crate::float::FloatsMut::F32($b)) => $body,
            (x, y) => crate::float::mixed_types(&x, &y),
        }
    };
}
pub(crate) use same_float_type;

/// Refuses operands of different width: the caller's defect.
#[cold]
#[allow(clippy::panic, reason = "plans are typed when they are lowered; reaching this is a defect of the caller")]
pub(crate) fn mixed_types(from: &Floats<'_>, to: &FloatsMut<'_>) -> ! {
    let from = if matches!(from, Floats::F16(_)) { "halves" } else { "floats" };
    let to = if matches!(to, FloatsMut::F16(_)) { "halves" } else { "floats" };
    panic!("a kernel was given {from} to read and {to} to write, both must be the same");
}
