//! The measure of a machine: multiply-adds that depend on no memory. Benchmarks divide by its rate to say how much of the
//! arithmetic units a kernel keeps busy.

use crate::isa::Isa;

/// Chains that do not wait for each other: two units times a latency of four or five.
const CHAINS: usize = 10;

const LANES: usize = 8;

/// Floating-point operations that one round of [`multiply_adds`] does.
pub const OPERATIONS_PER_ROUND: u64 = (2 * CHAINS * LANES) as u64;

/// Does `rounds` rounds of multiply-adds in registers, all by `factor`, and gives a value that depends on all of them.
pub fn multiply_adds(isa: Isa, rounds: u32, factor: f32) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        // SAFETY: the instruction set was detected.
        return unsafe { avx2(rounds, factor) };
    }
    let _ = isa;
    let mut chains = [[1.0f32; LANES]; CHAINS];
    for _ in 0..rounds {
        for value in chains.as_flattened_mut() {
            *value = *value * factor + factor;
        }
    }
    chains.as_flattened().iter().sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(rounds: u32, factor: f32) -> f32 {
    use std::arch::x86_64::{_mm256_add_ps, _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps};
    let factor = _mm256_set1_ps(factor);
    let mut chains = [_mm256_set1_ps(1.0); CHAINS];
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = _mm256_fmadd_ps(*chain, factor, factor);
        }
    }
    let [first, rest @ ..] = chains;
    _mm256_cvtss_f32(rest.into_iter().fold(first, |sum, chain| _mm256_add_ps(sum, chain)))
}
