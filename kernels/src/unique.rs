//! Finds which slices of a tensor are equal. It allocates, for models use it on constants alone, while they are loaded.

use std::cmp::Ordering;

use crate::top::Ordered;

/// Slices that are equal, as groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// The first slice of each group.
    pub first: Vec<usize>,
    /// The group of each slice.
    pub group_of: Vec<usize>,
    /// How many slices each group has.
    pub counts: Vec<usize>,
}

/// Groups the slices along the axis of `input`, seen as `[outer, axis, inner]`; by their elements in ascending order, or in the
/// order in which they come. NaN equals NaN and is the largest.
///
/// # Panics
///
/// When `input` has another number of elements: a defect of the caller.
pub fn unique<T: Ordered>(outer: usize, axis: usize, inner: usize, input: &[T], ascending: bool) -> Groups {
    assert_eq!(input.len(), outer * axis * inner, "slices of another tensor");
    let order = |a: usize, b: usize| {
        for block in 0..outer {
            let slice = |at: usize| &input[(block * axis + at) * inner..][..inner];
            for (a, b) in slice(a).iter().zip(slice(b)) {
                match a.order(b) {
                    Ordering::Equal => {}
                    unequal => return unequal,
                }
            }
        }
        Ordering::Equal
    };
    let mut sorted: Vec<usize> = (0..axis).collect();
    sorted.sort_by(|a, b| order(*a, *b));
    // the sort is stable, so the first slice of a run of equals is its first in the tensor
    let mut groups: Vec<Vec<usize>> =
        sorted.chunk_by(|a, b| order(*a, *b) == Ordering::Equal).map(<[usize]>::to_vec).collect();
    if !ascending {
        groups.sort_by_key(|group| group[0]);
    }
    let mut group_of = vec![0; axis];
    for (index, group) in groups.iter().enumerate() {
        for &slice in group {
            group_of[slice] = index;
        }
    }
    let first = groups.iter().map(|group| group[0]).collect();
    Groups { first, group_of, counts: groups.iter().map(Vec::len).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_grouped_in_both_orders() {
        let input = [2.0f32, 1.0, 1.0, 3.0, 4.0, 3.0];
        let groups = unique(1, 6, 1, &input, true);
        assert_eq!(groups.first, [1, 0, 3, 4]);
        assert_eq!(groups.group_of, [1, 0, 0, 2, 3, 2]);
        assert_eq!(groups.counts, [2, 1, 2, 1]);
        let groups = unique(1, 6, 1, &input, false);
        assert_eq!((groups.first, groups.group_of), (vec![0, 1, 3, 4], vec![0, 1, 1, 2, 3, 2]));
    }

    #[test]
    fn slices_are_compared_as_wholes() {
        let input = [1i64, 5, 1, 2, 6, 2];
        let groups = unique(2, 3, 1, &input, true);
        assert_eq!((groups.first, groups.counts), (vec![0, 1], vec![2, 1]));
    }
}
