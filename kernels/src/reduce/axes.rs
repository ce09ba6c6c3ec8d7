//! Which axes of a shape are folded away and which stay, with neighbours of one kind joined. It touches no data.

use crate::elementwise::MAX_RANK;

/// A shape seen as kept axes, folded axes and the innermost axis, which is of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Folding {
    pub kept: Axes,
    pub folded: Axes,
    /// The innermost axis, and whether it is folded.
    pub inner: usize,
    pub inner_folded: bool,
    /// Elements that are folded into one.
    pub count: usize,
}

/// Axes with their steps in the input, outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axes {
    rank: usize,
    sizes: [usize; MAX_RANK],
    steps: [usize; MAX_RANK],
}

impl Axes {
    const NONE: Axes = Axes { rank: 0, sizes: [1; MAX_RANK], steps: [0; MAX_RANK] };

    fn push(&mut self, size: usize, step: usize) {
        self.sizes[self.rank] = size;
        self.steps[self.rank] = step;
        self.rank += 1;
    }

    pub(super) fn positions(&self) -> usize {
        self.sizes[..self.rank].iter().product()
    }

    #[inline(always)]
    pub(super) fn offset(&self, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in (0..self.rank).rev() {
            offset += index % self.sizes[axis] * self.steps[axis];
            index /= self.sizes[axis];
        }
        offset
    }
}

impl Folding {
    /// Of tensors of `shape` over `axes`. `None` when an axis does not exist or there are more than 8.
    pub(super) fn new(shape: &[usize], axes: &[usize]) -> Option<Folding> {
        if shape.len() > MAX_RANK || axes.iter().any(|axis| *axis >= shape.len()) {
            return None;
        }
        // Neighbours of one kind are one axis; an axis of one element is of any kind.
        let mut joined: [(usize, bool); MAX_RANK] = [(1, false); MAX_RANK];
        let mut rank = 0;
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let folded = axes.contains(&axis);
            match joined[..rank].last_mut() {
                Some((last, kind)) if *kind == folded => *last *= size,
                _ => {
                    joined[rank] = (size, folded);
                    rank += 1;
                }
            }
        }
        let (inner, inner_folded) = joined[..rank].last().copied().unwrap_or((1, false));
        let mut folding = Folding { kept: Axes::NONE, folded: Axes::NONE, inner, inner_folded, count: 1 };
        for axis in 0..rank.saturating_sub(1) {
            let (size, folded) = joined[axis];
            let step = joined[axis + 1..rank].iter().map(|(size, _)| size).product();
            if folded { folding.folded.push(size, step) } else { folding.kept.push(size, step) }
        }
        folding.count = folding.folded.positions() * if inner_folded { inner } else { 1 };
        Some(folding)
    }

    /// Outputs beside each other in one row.
    pub(super) fn columns(&self) -> usize {
        if self.inner_folded { 1 } else { self.inner }
    }
}
