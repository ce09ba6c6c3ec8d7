//! Operands, scratch and error bounds that the tests share.

use half::f16;
use insula_kernels::Isa;

/// Both instruction sets of this machine.
pub fn instruction_sets() -> [Isa; 2] {
    [Isa::detect(), Isa::portable()]
}

/// Values in -1..=1 that halves hold exactly, from a linear congruence.
pub fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 2049) as f32 / 1024.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The same values as halves, each rounded once.
pub fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|x| f16::from_f32(*x)).collect()
}

/// Scratch full of NaN: what is read before it is written shows.
pub fn scratch(bytes: usize) -> Vec<u128> {
    vec![u128::MAX; bytes.div_ceil(16)]
}

/// Bits, to compare without tolerance.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Higham's bound for a sum of `terms` terms in any order, relative to the sum of their magnitudes.
pub fn gamma(terms: usize) -> f64 {
    let unit = f64::from(f32::EPSILON) / 2.0;
    terms as f64 * unit / (1.0 - terms as f64 * unit)
}

/// Checks `found` against exact sums, given with the sums of their terms' magnitudes.
pub fn assert_sums(found: &[f32], exact: &[(f64, f64)], terms: usize) {
    assert_eq!(found.len(), exact.len());
    for (index, (found, (exact, magnitude))) in found.iter().zip(exact).enumerate() {
        let error = (f64::from(*found) - exact).abs();
        assert!(error <= gamma(terms) * magnitude + 1e-37, "element {index} is {found}, expected {exact}");
    }
}
