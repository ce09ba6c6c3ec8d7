//! Which arena-sized slots of a domain's windows are taken. Every run of slots it hands out is followed by one slot that
//! stays closed, and every window begins with one: these are the guard gaps. Numbers only; the region table asks it.

use std::collections::BTreeMap;

/// Free slots of all windows. Windows are numbered through; none touches the next, so a run never spans two of them.
#[derive(Debug, Default)]
pub(crate) struct AddressSpace {
    /// Start and length of each free row of slots.
    free: BTreeMap<u32, u32>,
    end: u32,
}

/// Closed slots before the first run of a window.
const LEADING_GAP: u32 = 1;
/// Closed slots behind every run.
const GAP: u32 = 1;

impl AddressSpace {
    /// Slots of address space for a domain of up to `arenas` arenas: twice the worst case of single arenas with their gaps,
    /// so that rows of arenas find a place too. Address space costs nothing.
    pub(crate) fn window_slots(arenas: u32) -> u32 {
        LEADING_GAP.saturating_add(arenas.saturating_mul(2 * (1 + GAP)))
    }

    /// Adds a window of `slots` slots and returns the number of its first; `None` when numbers run out.
    pub(crate) fn add_window(&mut self, slots: u32) -> Option<u32> {
        let first = self.end;
        self.end = first.checked_add(slots)?;
        if slots > LEADING_GAP {
            self.free.insert(first + LEADING_GAP, slots - LEADING_GAP);
        }
        Some(first)
    }

    /// Takes `count` slots in a row and the gap behind them: the first place that is large enough.
    pub(crate) fn take(&mut self, count: u32) -> Option<u32> {
        let needed = count.checked_add(GAP)?;
        let (&start, &length) = self.free.iter().find(|(_, length)| **length >= needed)?;
        self.free.remove(&start);
        if length > needed {
            self.free.insert(start + needed, length - needed);
        }
        Some(start)
    }

    /// Takes back what [`AddressSpace::take`] gave.
    pub(crate) fn give(&mut self, mut start: u32, count: u32) {
        let mut length = count + GAP;
        if let Some((&before, &its_length)) = self.free.range(..start).next_back()
            && before + its_length == start
        {
            self.free.remove(&before);
            start = before;
            length += its_length;
        }
        if let Some(its_length) = self.free.remove(&(start + length)) {
            length += its_length;
        }
        self.free.insert(start, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::cases;
    use proptest::prelude::*;

    #[test]
    fn no_run_touches_another_or_the_edge_of_its_window() {
        let mut space = AddressSpace::default();
        assert_eq!(space.add_window(8), Some(0));
        assert_eq!((space.take(2), space.take(3), space.take(1)), (Some(1), Some(4), None));
        assert_eq!(space.add_window(3), Some(8));
        assert_eq!((space.take(1), space.take(1)), (Some(9), None));
    }

    #[test]
    fn numbers_that_run_out_are_an_answer() {
        let mut space = AddressSpace::default();
        assert!(space.add_window(u32::MAX - 1).is_some());
        assert_eq!(space.add_window(2), None);
        assert_eq!(space.take(u32::MAX), None);
        assert_eq!(AddressSpace::window_slots(u32::MAX), u32::MAX);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn runs_never_overlap_and_all_space_comes_back(choices in proptest::collection::vec((any::<bool>(), 1u32..9, any::<usize>()), 1..80)) {
            let mut space = AddressSpace::default();
            let windows = [(space.add_window(33).unwrap(), 33), (space.add_window(17).unwrap(), 17)];
            let mut taken: Vec<(u32, u32)> = Vec::new();
            for (take, count, pick) in choices {
                if take {
                    if let Some(start) = space.take(count) {
                        prop_assert!(taken.iter().all(|(other, length)| start + count < *other || other + length < start));
                        prop_assert!(windows.iter().any(|(first, slots)| start > *first && start + count < first + slots));
                        taken.push((start, count));
                    }
                } else if !taken.is_empty() {
                    let (start, count) = taken.swap_remove(pick % taken.len());
                    space.give(start, count);
                }
            }
            for (start, count) in taken {
                space.give(start, count);
            }
            prop_assert_eq!(space.free.into_iter().collect::<Vec<_>>(), [(1, 32), (34, 16)]);
        }
    }
}
