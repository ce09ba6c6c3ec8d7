//! Runs of set bits in a `u64` that stands for the spans of an arena. Pure bit arithmetic for the region table.

/// One set bit for each of `count` spans from number `first` on. Needs `first + count <= 64` and `count >= 1`.
pub(crate) fn run(first: u32, count: u32) -> u64 {
    (u64::MAX >> (u64::BITS - count)) << first
}

/// The lowest place where `count >= 1` set bits stand in a row.
pub(crate) fn find_run(bits: u64, count: u32) -> Option<u32> {
    let mut starts = bits;
    let mut covered = 1;
    while covered < count {
        let step = covered.min(count - covered);
        starts &= starts.checked_shr(step)?;
        covered += step;
    }
    (starts != 0 && count <= u64::BITS).then(|| starts.trailing_zeros())
}

/// The length of the longest row of set bits.
pub(crate) fn longest_run(bits: u64) -> u32 {
    if bits == u64::MAX {
        return u64::BITS;
    }
    // starts[k]: the places where a row of 2^k set bits begins; a row of 64 has been ruled out
    let mut starts = [bits; 6];
    for k in 1..6 {
        starts[k] = starts[k - 1] & (starts[k - 1] >> (1 << (k - 1)));
    }
    // the longest length, bit by bit from the highest: `reached` are the places where a row of `length` begins
    let (mut reached, mut length) = (u64::MAX, 0);
    for k in (0..6).rev() {
        let longer = reached & (starts[k] >> length);
        if longer != 0 {
            reached = longer;
            length += 1 << k;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::cases;
    use proptest::prelude::*;

    fn find_run_slowly(bits: u64, count: u32) -> Option<u32> {
        (0..=64u32.checked_sub(count)?).find(|first| (0..count).all(|index| bits >> (first + index) & 1 == 1))
    }

    #[test]
    fn a_full_and_an_empty_arena() {
        assert_eq!((find_run(u64::MAX, 64), find_run(u64::MAX, 65), find_run(0, 1)), (Some(0), None, None));
        assert_eq!((longest_run(u64::MAX), longest_run(0)), (64, 0));
        assert_eq!((run(0, 64), run(63, 1)), (u64::MAX, 1 << 63));
    }

    proptest! {
        #![proptest_config(cases(512))]

        #[test]
        fn runs_are_found_where_a_slow_search_finds_them(a in any::<u64>(), b in any::<u64>(), count in 1u32..=65) {
            for bits in [a, a | b, a & b, !(a & b)] {
                prop_assert_eq!(find_run(bits, count), find_run_slowly(bits, count));
                let longest = longest_run(bits);
                prop_assert!(longest == 0 || find_run_slowly(bits, longest).is_some());
                prop_assert!(find_run_slowly(bits, longest + 1).is_none());
            }
        }
    }
}
