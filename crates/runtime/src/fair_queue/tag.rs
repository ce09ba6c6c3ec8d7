//! Virtual time: tags in nanoseconds of device time per unit of weight, and the weights themselves. Fixed-point integers
//! throughout, so that charging in parts comes to the same tag as charging at once. Knows no queue.

use std::fmt;
use std::time::Duration;

use insula_core::Quota;

/// Binary digits after the point of a tag.
const FRACTION_BITS: u32 = 40;

/// Weights are kept in millionths.
const WEIGHT_UNIT: u64 = 1_000_000;

/// A point in virtual time, or a distance between two: ns of device time per unit of weight, with 40 fractional bits.
/// Sums saturate; at the smallest weight that happens after more than a hundred years of device time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u128);

impl Tag {
    /// The start of virtual time.
    pub const ZERO: Tag = Tag(0);

    /// The tag `distance` after this one.
    #[must_use]
    pub fn plus(self, distance: Tag) -> Tag {
        Tag(self.0.saturating_add(distance.0))
    }

    /// The tag `distance` before this one, or the start of virtual time.
    #[must_use]
    pub fn minus(self, distance: Tag) -> Tag {
        Tag(self.0.saturating_sub(distance.0))
    }

    /// The whole nanoseconds per unit of weight.
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0 >> FRACTION_BITS).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/w", Duration::from_nanos(self.nanos()))
    }
}

/// A tenant's share relative to others: 0.01 to 1000, less on each of several shards.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weight {
    millionths: u32,
    /// The tag distance of one nanosecond.
    rate: u64,
}

impl Weight {
    /// The weight of a tenant that has none of its own.
    pub const ONE: Weight = Weight::from_millionths(WEIGHT_UNIT as u32);

    /// The weight nearest to `weight` in [`Quota::WEIGHT_RANGE`], to a millionth; what is not a number is the smallest.
    pub fn new(weight: f64) -> Weight {
        let (low, high) = (*Quota::WEIGHT_RANGE.start(), *Quota::WEIGHT_RANGE.end());
        let weight = if weight.is_nan() { low } else { weight.clamp(low, high) };
        // At most 1e9 after the clamp, so the conversion neither truncates nor wraps.
        Weight::from_millionths((weight * WEIGHT_UNIT as f64).round() as u32)
    }

    /// What is left of this weight on each of `shards` shards that a tenant is active on at once.
    #[must_use]
    pub fn split(self, shards: u32) -> Weight {
        Weight::from_millionths((self.millionths / shards.max(1)).max(1))
    }

    const fn from_millionths(millionths: u32) -> Weight {
        Weight { millionths, rate: (WEIGHT_UNIT << FRACTION_BITS) / millionths as u64 }
    }

    /// The weight as a number.
    pub fn get(self) -> f64 {
        f64::from(self.millionths) / WEIGHT_UNIT as f64
    }

    /// The tag distance that `nanos` of device time are worth at this weight. Exactly additive.
    pub fn distance(self, nanos: u64) -> Tag {
        Tag(u128::from(nanos) * u128::from(self.rate))
    }

    /// The whole nanoseconds of device time that `distance` is worth at this weight.
    pub fn device_nanos(self, distance: Tag) -> u64 {
        u64::try_from(distance.0 / u128::from(self.rate)).unwrap_or(u64::MAX)
    }

    /// The distance that stands for the same device time at weight `to` as `distance` does at this weight.
    pub fn convert(self, distance: Tag, to: Weight) -> Tag {
        Tag((distance.0 / u128::from(self.rate)).saturating_mul(u128::from(to.rate)))
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_weights_are_brought_into_the_range() {
        for (odd, expected) in [(f64::NAN, 0.01), (-1.0, 0.01), (0.0, 0.01), (1e9, 1000.0), (f64::INFINITY, 1000.0)] {
            assert_eq!(Weight::new(odd).get(), expected, "{odd}");
        }
        assert_eq!(Weight::new(1.0), Weight::ONE);
    }

    #[test]
    fn half_the_weight_goes_twice_as_far() {
        let (whole, half) = (Weight::new(2.0), Weight::new(2.0).split(2));
        assert_eq!(half, Weight::ONE);
        assert_eq!(whole.distance(10).plus(whole.distance(10)), half.distance(10));
        assert_eq!(Weight::new(0.01).split(u32::MAX).distance(1).nanos(), 1_000_000);
    }

    #[test]
    fn a_hundred_years_at_the_smallest_weight_do_not_saturate() {
        let century = 100 * 365 * 24 * 3600 * 1_000_000_000;
        assert_eq!(Weight::new(0.01).distance(century).plus(Weight::ONE.distance(1)), {
            Tag(u128::from(century) * 100 * (1 << FRACTION_BITS) + (1 << FRACTION_BITS))
        });
        assert_eq!(Tag(u128::MAX).plus(Tag(1)), Tag(u128::MAX));
    }

    proptest! {
        #[test]
        fn charging_in_parts_comes_to_the_same(weight in 0.01f64..1000.0, a in 0u64..1 << 40, b in 0u64..1 << 40) {
            let weight = Weight::new(weight);
            prop_assert_eq!(weight.distance(a).plus(weight.distance(b)), weight.distance(a + b));
        }

        #[test]
        fn a_changed_weight_keeps_the_device_time_of_a_distance(from in 0.01f64..1000.0, to in 0.01f64..1000.0, ns in 0u64..1 << 50) {
            let (from, to) = (Weight::new(from), Weight::new(to));
            prop_assert_eq!(from.convert(from.distance(ns), to), to.distance(ns));
        }
    }
}
