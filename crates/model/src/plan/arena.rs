//! Places buffers in one arena by their lifetimes: each gets the smallest gap that fits when it is first written and gives it back
//! after it was last read. O(log n) a buffer, so that no graph can make it slow. Offsets are aligned; nothing is known here of
//! what the buffers hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

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
    let mut gaps = Gaps::default();
    let mut alive = BinaryHeap::new(); // (last, offset, size), the first to end on top
    let mut offsets = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        while let Some(&Reverse((last, offset, size))) = alive.peek()
            && last < buffer.first
        {
            alive.pop();
            gaps.give_back(offset, size);
        }
        let size = buffer.bytes.max(1).checked_next_multiple_of(ARENA_ALIGNMENT);
        let placed = size.and_then(|size| Some((gaps.take(size)?, size)));
        let Some((offset, size)) = placed else {
            return Err(LoadError::limit("the model's intermediates take more memory than can be addressed"));
        };
        alive.push(Reverse((buffer.last, offset, size)));
        offsets.push(offset);
    }
    Ok((offsets, gaps.end))
}

/// What is free below `end`. No two gaps touch.
#[derive(Default)]
struct Gaps {
    by_offset: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
    end: usize,
}

impl Gaps {
    /// Takes `size` bytes from the smallest gap that has them, else from the end, which moves. `None` when that overflows.
    fn take(&mut self, size: usize) -> Option<usize> {
        if let Some(&(found, offset)) = self.by_size.range((size, 0)..).next() {
            self.remove(offset, found);
            if found > size {
                self.insert(offset + size, found - size);
            }
            return Some(offset);
        }
        let last = self.by_offset.last_key_value().map(|(&offset, &found)| (offset, found));
        let at_end = last.filter(|(offset, found)| offset + found == self.end);
        let offset = at_end.map_or(self.end, |(offset, _)| offset);
        self.end = offset.checked_add(size)?;
        if let Some((offset, found)) = at_end {
            self.remove(offset, found);
        }
        Some(offset)
    }

    fn give_back(&mut self, mut offset: usize, mut size: usize) {
        if let Some((&before, &found)) = self.by_offset.range(..offset).next_back()
            && before + found == offset
        {
            self.remove(before, found);
            offset = before;
            size += found;
        }
        if let Some(&found) = self.by_offset.get(&(offset + size)) {
            self.remove(offset + size, found);
            size += found;
        }
        self.insert(offset, size);
    }

    fn insert(&mut self, offset: usize, size: usize) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
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
