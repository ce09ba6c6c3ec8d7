//! Which instructions kernels may use: found once at run time and carried as a value that proves it. It contains the
//! bridge from safe kernels, written once as plain loops, to code compiled for AVX2, FMA and F16C. Every kernel starts
//! here; nothing else in the crate asks the processor what it can do.

use half::f16;

/// The instruction set that kernels run with. A value is the proof that this machine has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Isa {
    /// The best set that this machine has. The answer is cached by the standard library.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            return Isa(Kind::Avx2(Avx2(())));
        }
        Isa::portable()
    }

    /// Plain code, right on every machine.
    pub fn portable() -> Isa {
        Isa(Kind::Portable)
    }

    /// A name for logs: `avx2+fma+f16c` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2+fma+f16c",
        }
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx2(self) -> bool {
        matches!(self.0, Kind::Avx2(_))
    }

    /// Runs `kernel` compiled for this instruction set.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Kind::Portable => kernel.run(Portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx2` exists only after the three features were detected.
            Kind::Avx2(avx2) => unsafe { run_avx2(avx2, kernel) },
        }
    }
}

/// A routine that can be compiled for several instruction sets. Mark `run`, and what it calls, `#[inline(always)]`:
/// only code that ends up inside the bridge function is compiled with its features.
pub(crate) trait Kernel {
    type Output;

    fn run<I: Instructions>(self, isa: I) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(avx2: Avx2, kernel: K) -> K::Output {
    kernel.run(avx2)
}

/// What differs between instruction sets and cannot be left to the compiler.
pub(crate) trait Instructions: crate::gemm::Microkernel + Copy {
    /// Runs `kernel` compiled for this set, as a call of its own: where inlining would repeat much code.
    fn call<K: Kernel>(self, kernel: K) -> K::Output;

    /// `a * b + c`; rounded once where the machine has a fused instruction, else twice. One choice for each set.
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32;

    /// Converts exactly; both slices have the same length.
    fn widen(self, from: &[f16], to: &mut [f32]);

    /// Converts to nearest, ties to even; both slices have the same length.
    fn narrow(self, from: &[f32], to: &mut [f16]);
}

/// Plain code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portable;

impl Instructions for Portable {
    #[inline(never)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        // Without the instruction, `f32::mul_add` is a library call that is tens of times slower.
        if cfg!(any(target_feature = "fma", target_arch = "aarch64")) { a.mul_add(b, c) } else { a * b + c }
    }

    #[inline(always)]
    fn widen(self, from: &[f16], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.to_f32();
        }
    }

    #[inline(always)]
    fn narrow(self, from: &[f32], to: &mut [f16]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f16::from_f32(*from);
        }
    }
}

/// AVX2, FMA and F16C; made only by [`Isa::detect`].
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
        _mm256_loadu_ps, _mm256_storeu_ps,
    };

    use half::f16;

    use super::{Avx2, Instructions, Kernel, run_avx2};

    const LANES: usize = 8;

    impl Instructions for Avx2 {
        #[inline(always)]
        fn call<K: Kernel>(self, kernel: K) -> K::Output {
            // SAFETY: `self` proves the features.
            unsafe { run_avx2(self, kernel) }
        }

        #[inline(always)]
        fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
            a.mul_add(b, c)
        }

        #[inline(always)]
        fn widen(self, from: &[f16], to: &mut [f32]) {
            // SAFETY: `self` proves the features.
            unsafe { widen(from, to) }
        }

        #[inline(always)]
        fn narrow(self, from: &[f32], to: &mut [f16]) {
            // SAFETY: `self` proves the features.
            unsafe { narrow(from, to) }
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn widen(from: &[f16], to: &mut [f32]) {
        let length = from.len().min(to.len());
        let (from, to) = (&from[..length], &mut to[..length]);
        let (from_rows, from_rest) = from.as_chunks::<LANES>();
        let (to_rows, to_rest) = to.as_chunks_mut::<LANES>();
        for (from, to) in from_rows.iter().zip(to_rows) {
            widen_lanes(from, to);
        }
        if !from_rest.is_empty() {
            let (mut padded, mut wide) = ([f16::ZERO; LANES], [0.0; LANES]);
            padded[..from_rest.len()].copy_from_slice(from_rest);
            widen_lanes(&padded, &mut wide);
            to_rest.copy_from_slice(&wide[..from_rest.len()]);
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn narrow(from: &[f32], to: &mut [f16]) {
        let length = from.len().min(to.len());
        let (from, to) = (&from[..length], &mut to[..length]);
        let (from_rows, from_rest) = from.as_chunks::<LANES>();
        let (to_rows, to_rest) = to.as_chunks_mut::<LANES>();
        for (from, to) in from_rows.iter().zip(to_rows) {
            narrow_lanes(from, to);
        }
        if !from_rest.is_empty() {
            let (mut padded, mut halves) = ([0.0; LANES], [f16::ZERO; LANES]);
            padded[..from_rest.len()].copy_from_slice(from_rest);
            narrow_lanes(&padded, &mut halves);
            to_rest.copy_from_slice(&halves[..from_rest.len()]);
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn widen_lanes(from: &[f16; LANES], to: &mut [f32; LANES]) {
        // SAFETY: both references cover the 16 and 32 bytes that are read and written; the accesses need no alignment.
        unsafe {
            let halves = _mm_loadu_si128(from.as_ptr().cast::<__m128i>());
            _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn narrow_lanes(from: &[f32; LANES], to: &mut [f16; LANES]) {
        // SAFETY: both references cover the 32 and 16 bytes that are read and written; the accesses need no alignment.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
            _mm_storeu_si128(to.as_mut_ptr().cast::<__m128i>(), halves);
        }
    }
}
