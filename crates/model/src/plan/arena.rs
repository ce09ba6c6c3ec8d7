//! Places buffers in one arena: first fit by lifetime. At its first step a buffer gets the lowest gap between those alive; it gives
//! it back after its last. Offsets are aligned; nothing is known here of what the buffers hold.

use std::collections::BTreeMap;

use crate::error::{LoadError, LoadResult};
use crate::plan::ARENA_ALIGNMENT;

/// When a buffer is needed, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// The step that writes it. Buffers are given in the order of this.
    pub first: usize,
    /// The last step that reads it, at least `first`.
    pub last: usize,
    /// Its size.
    pub bytes: usize,
}

/// The offset of each buffer, and the arena's size. Fails when that cannot be counted.
pub(crate) fn place(buffers: &[Lifetime]) -> LoadResult<(Vec<usize>, usize)> {
    let mut alive: BTreeMap<usize, (usize, usize)> = BTreeMap::new(); // offset -> (end, last)
    let mut offsets = Vec::with_capacity(buffers.len());
    let mut total = 0;
    for buffer in buffers {
        alive.retain(|_, (_, last)| *last >= buffer.first);
        let size = buffer.bytes.max(1).checked_next_multiple_of(ARENA_ALIGNMENT);
        let placed = size.and_then(|size| first_gap(&alive, size).map(|offset| (offset, size)));
        let Some((offset, end)) = placed.and_then(|(offset, size)| Some((offset, offset.checked_add(size)?))) else {
            return Err(LoadError::limit("the model's intermediates take more memory than can be addressed"));
        };
        alive.insert(offset, (end, buffer.last));
        offsets.push(offset);
        total = total.max(end);
    }
    Ok((offsets, total))
}

fn first_gap(alive: &BTreeMap<usize, (usize, usize)>, size: usize) -> Option<usize> {
    let mut offset = 0usize;
    for (&begin, &(end, _)) in alive {
        if begin - offset >= size {
            return Some(offset);
        }
        offset = end;
    }
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lifetime(first: usize, last: usize, bytes: usize) -> Lifetime {
        Lifetime { first, last, bytes }
    }

    #[test]
    fn a_chain_needs_room_for_two() {
        let chain: Vec<Lifetime> = (0..100).map(|step| lifetime(step, step + 1, 1000)).collect();
        let (offsets, total) = place(&chain).unwrap();
        assert_eq!((&offsets[..4], total), (&[0, 1024, 0, 1024][..], 2048));
    }

    #[test]
    fn what_lives_on_is_not_overwritten() {
        let (offsets, total) =
            place(&[lifetime(0, 9, 64), lifetime(1, 2, 64), lifetime(2, 3, 64), lifetime(3, 4, 128)]).unwrap();
        assert_eq!((offsets, total), (vec![0, 64, 128, 192], 320));
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert!(place(&[lifetime(0, 0, usize::MAX)]).is_err());
        assert!(place(&[lifetime(0, 1, usize::MAX / 2), lifetime(1, 1, usize::MAX / 2 + 1024)]).is_err());
    }

    proptest! {
        #[test]
        fn no_two_live_buffers_overlap(
            buffers in proptest::collection::vec((0usize..40, 0usize..12, 0usize..5000), 1..60)
        ) {
            let mut buffers: Vec<Lifetime> = buffers.into_iter().map(|(first, more, bytes)| lifetime(first, first + more, bytes)).collect();
            buffers.sort_by_key(|buffer| buffer.first);
            let (offsets, total) = place(&buffers).unwrap();
            let most_at_once = (0..60).map(|step| {
                buffers.iter().filter(|buffer| (buffer.first..=buffer.last).contains(&step)).map(|buffer| buffer.bytes).sum::<usize>()
            }).max().unwrap();
            prop_assert!(total >= most_at_once);
            for (one, first) in buffers.iter().enumerate() {
                prop_assert_eq!(offsets[one] % ARENA_ALIGNMENT, 0);
                prop_assert!(offsets[one] + first.bytes <= total);
                for (other, second) in buffers.iter().enumerate().skip(one + 1) {
                    let together = first.first <= second.last && second.first <= first.last;
                    let apart = offsets[one] + first.bytes <= offsets[other] || offsets[other] + second.bytes <= offsets[one];
                    prop_assert!(!together || apart, "{first:?} at {} and {second:?} at {}", offsets[one], offsets[other]);
                }
            }
        }
    }
}
