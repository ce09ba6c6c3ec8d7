//! The largest or smallest elements along an axis, in order, with their positions. Equals keep the order of their positions;
//! NaN counts as larger than everything.

use std::cmp::Ordering;
use std::ops::Range;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::lanes::Strip;

/// An element that can be put in order.
pub trait Ordered: Pod {
    /// A total order in which NaN is the largest and the zeros are equal.
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Ordered for $type {
            #[inline(always)]
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        })*
    };
}
integers!(u8 u16 u32 u64 i8 i16 i32 i64);

macro_rules! floats {
    ($($type:ty)*) => {
        $(impl Ordered for $type {
            #[inline(always)]
            fn order(&self, other: &Self) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        })*
    };
}
floats!(f32 f64 f16 bf16);

/// The first `count` elements along an axis, in descending order (`largest`) or ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Top {
    /// The axis, of which there are at most 2^32 elements.
    pub strip: Strip,
    /// How many, at most the axis's size.
    pub count: usize,
    /// Whether the largest come first.
    pub largest: bool,
}

impl Top {
    /// How many positions of scratch a run needs.
    pub fn scratch(&self) -> usize {
        self.strip.axis
    }

    /// Goes through the columns `columns` of `input`, a whole tensor seen as `[slices, axis, inner]` with `slices * inner` columns,
    /// and calls `write` with each output element's place in `[slices, count, inner]`, its position along the axis and its value.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run<T: Ordered>(
        &self,
        columns: Range<usize>,
        input: &[T],
        scratch: &mut [u32],
        mut write: impl FnMut(usize, usize, T),
    ) {
        let Top { strip: Strip { axis, inner }, count, largest } = *self;
        let positions = &mut scratch[..axis];
        for column in columns {
            let (slice, lane) = (column / inner, column % inner);
            let start = slice * axis * inner + lane;
            let value = |position: u32| input[start + position as usize * inner];
            for (at, position) in positions.iter_mut().enumerate() {
                *position = at as u32;
            }
            let order = |a: &u32, b: &u32| {
                let values = value(*a).order(&value(*b));
                if largest { values.reverse() } else { values }.then(a.cmp(b))
            };
            if 0 < count && count < axis {
                positions.select_nth_unstable_by(count - 1, order);
            }
            positions[..count].sort_unstable_by(order);
            for (k, &position) in positions[..count].iter().enumerate() {
                write((slice * count + k) * inner + lane, position as usize, value(position));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run<T: Ordered>(top: Top, slices: usize, input: &[T]) -> (Vec<T>, Vec<usize>) {
        let outputs = slices * top.count * top.strip.inner;
        let (mut values, mut positions) = (vec![T::zeroed(); outputs], vec![usize::MAX; outputs]);
        let mut scratch = vec![7; top.scratch()];
        top.run(0..slices * top.strip.inner, input, &mut scratch, |place, position, value| {
            values[place] = value;
            positions[place] = position;
        });
        (values, positions)
    }

    #[test]
    fn equals_keep_their_order_and_nan_is_largest() {
        let input = [1.0f32, 3.0, f32::NAN, 3.0, -0.0, 0.0];
        let top = |count, largest| Top { strip: Strip { axis: 6, inner: 1 }, count, largest };
        assert_eq!(run(top(3, true), 1, &input).1, [2, 1, 3]);
        assert_eq!(run(top(6, false), 1, &input).1, [4, 5, 0, 1, 3, 2]);
        assert_eq!(run(top(2, false), 1, &input).1, [4, 5]);
        assert_eq!(run(top(0, false), 1, &input).1, []);
    }

    proptest! {
        #[test]
        fn the_first_of_a_stable_sort_are_found(values in proptest::collection::vec(-3i64..4, 24), count in 0usize..5, largest: bool) {
            let (found, positions) = run(Top { strip: Strip { axis: 4, inner: 3 }, count: count.min(4), largest }, 2, &values);
            let count = count.min(4);
            for slice in 0..2 {
                for lane in 0..3 {
                    let mut sorted: Vec<(usize, i64)> = (0..4).map(|k| (k, values[slice * 12 + k * 3 + lane])).collect();
                    sorted.sort_by_key(|(_, value)| if largest { -value } else { *value });
                    for (k, (position, value)) in sorted.into_iter().take(count).enumerate() {
                        let place = (slice * count + k) * 3 + lane;
                        prop_assert_eq!((found[place], positions[place]), (value, position));
                    }
                }
            }
        }
    }
}
