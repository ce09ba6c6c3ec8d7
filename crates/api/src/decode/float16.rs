//! Rounding to the two 16-bit float types, to nearest with ties to even, straight from f64: going by way of f32 would round
//! twice. The tensor filler calls it.

/// A 16-bit float type: its field widths in bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow {
    exponent: u32,
    fraction: u32,
}

/// IEEE binary16.
pub(super) const FP16: Narrow = Narrow { exponent: 5, fraction: 10 };
/// bfloat16.
pub(super) const BF16: Narrow = Narrow { exponent: 8, fraction: 7 };

const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The bits of the value of type `to` that is nearest to `value`; `None` when that is infinite or not a number.
pub(super) fn round(value: f64, to: Narrow) -> Option<u16> {
    let bits = value.to_bits();
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let biased = i32::try_from(bits >> FRACTION_BITS & 0x7ff).ok()?;
    if biased == 0x7ff {
        return None;
    }
    // zero and the subnormals of f64 are far below half of the least value of either type
    if biased == 0 {
        return Some(sign);
    }
    let exponent = biased - 1023;
    let significand = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    let bias = (1 << (to.exponent - 1)) - 1;
    let below_normal = u32::try_from(1 - bias - exponent).unwrap_or(0);
    let shift = FRACTION_BITS - to.fraction + below_normal;
    if shift > FRACTION_BITS + 1 {
        return Some(sign);
    }
    let rounded = divide_to_even(significand, shift);
    // the leading one of a normal number is added to its exponent field, and so is a carry
    let field = u64::try_from(exponent + bias - 1).unwrap_or(0);
    let magnitude = (field << to.fraction) + rounded;
    let infinity = ((1 << to.exponent) - 1) << to.fraction;
    (magnitude < infinity)
        .then_some(magnitude)
        .and_then(|magnitude| u16::try_from(magnitude).ok())
        .map(|bits| bits | sign)
}

/// `value / 2^shift`, rounded to nearest, ties to even. `shift` is from 1 to 63.
fn divide_to_even(value: u64, shift: u32) -> u64 {
    let (quotient, rest, half) = (value >> shift, value & ((1 << shift) - 1), 1 << (shift - 1));
    quotient + u64::from(rest > half || (rest == half && quotient & 1 == 1))
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_rounds_to_itself() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let expected = half.is_finite().then_some(bits);
            assert_eq!(round(half.to_f64(), FP16), expected, "{half}");
            let expected = brain.is_finite().then_some(bits);
            assert_eq!(round(brain.to_f64(), BF16), expected, "{brain}");
        }
    }

    #[test]
    fn ties_go_to_even_and_anything_beyond_them_does_not() {
        let one = 0x3c00;
        assert_eq!(round(1.0 + f64::powi(2.0, -11), FP16), Some(one));
        assert_eq!(round(1.0 + f64::powi(2.0, -11) + f64::EPSILON, FP16), Some(one + 1));
        assert_eq!(round(1.0 + 3.0 * f64::powi(2.0, -11), FP16), Some(one + 2));
        assert_eq!(round(f64::powi(2.0, -25), FP16), Some(0));
        assert_eq!(round(-f64::powi(2.0, -25) * 1.5, FP16), Some(0x8001));
        assert_eq!(round(65519.99, FP16), Some(0x7bff));
        assert_eq!(round(65520.0, FP16), None);
        assert_eq!(round(-70000.0, FP16), None);
        assert_eq!(round(f64::NAN, BF16), None);
        assert_eq!(round(1e39, BF16), None);
        assert_eq!(round(-0.0, FP16), Some(0x8000));
    }

    proptest! {
        #[test]
        fn no_neighbour_is_nearer(value in prop_oneof![-70000.0..70000.0f64, -1e-4..1e-4f64, -1e-7..1e-7f64]) {
            if let Some(bits) = round(value, FP16) {
                let distance = |bits: u16| (f16::from_bits(bits).to_f64() - value).abs();
                for neighbour in [bits.wrapping_add(1), bits.wrapping_sub(1)] {
                    let other = distance(neighbour);
                    prop_assert!(!other.is_finite() || distance(bits) < other || (distance(bits) == other && bits & 1 == 0));
                }
            }
        }
    }
}
