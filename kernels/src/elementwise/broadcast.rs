//! How the elements of tensors meet under numpy's broadcasting, worked out once: the output as rows, and for each row
//! where the operands' rows begin. It touches no data.

use super::MAX_RANK;

/// `N` tensors broadcast to one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broadcast<const N: usize = 2> {
    /// Dimensions above the rows, outermost first: size and the operands' strides.
    outer: [Axis<N>; MAX_RANK],
    rank: usize,
    /// The rows themselves.
    columns: Axis<N>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis<const N: usize> {
    size: usize,
    strides: [usize; N],
}

impl<const N: usize> Axis<N> {
    const UNIT: Axis<N> = Axis { size: 1, strides: [0; N] };

    /// Whether this axis and the one inside it are one for every operand.
    fn joins(&self, inner: &Axis<N>) -> bool {
        (0..N).all(|operand| self.strides[operand] == inner.strides[operand] * inner.size)
    }
}

impl Broadcast {
    /// The broadcast of dense tensors of shapes `a` and `b`; see [`Broadcast::of`].
    pub fn new(a: &[usize], b: &[usize], keep_last: bool) -> Option<Broadcast> {
        Broadcast::of([a, b], keep_last)
    }
}

impl<const N: usize> Broadcast<N> {
    /// The broadcast of dense tensors of `shapes`; `None` when the shapes do not fit or have more than [`MAX_RANK`]
    /// dimensions. With `keep_last` a row is the output's last dimension; without, as much as lies flat.
    pub fn of(shapes: [&[usize]; N], keep_last: bool) -> Option<Broadcast<N>> {
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
        if rank > MAX_RANK {
            return None;
        }
        let mut axes = [Axis::UNIT; MAX_RANK];
        let mut next = [1; N];
        for back in 1..=rank {
            let sizes = shapes.map(|shape| if back <= shape.len() { shape[shape.len() - back] } else { 1 });
            let size = sizes.iter().copied().find(|size| *size != 1).unwrap_or(1);
            if sizes.iter().any(|other| *other != 1 && *other != size) {
                return None;
            }
            let strides = std::array::from_fn(|operand| if sizes[operand] == 1 { 0 } else { next[operand] });
            axes[rank - back] = Axis { size, strides };
            for (next, size) in next.iter_mut().zip(sizes) {
                *next *= size;
            }
        }
        Some(Broadcast::collapse(&axes[..rank], keep_last))
    }

    /// Joins axes that lie flat for every operand, from the inside out.
    fn collapse(axes: &[Axis<N>], keep_last: bool) -> Broadcast<N> {
        let (mut columns, mut rest) = (Axis::UNIT, axes);
        if let [outer @ .., last] = axes {
            (columns, rest) = (*last, outer);
        }
        if !keep_last {
            while let [outer @ .., axis] = rest {
                if axis.size != 1 && columns.size != 1 && !axis.joins(&columns) {
                    break;
                }
                if columns.size == 1 {
                    columns = *axis;
                } else {
                    columns.size *= axis.size;
                }
                rest = outer;
            }
        }
        let mut outer = [Axis::UNIT; MAX_RANK];
        let mut rank = 0;
        for axis in rest.iter().filter(|axis| axis.size != 1) {
            match outer[..rank].last_mut() {
                Some(above) if above.joins(axis) => {
                    *above = Axis { size: above.size * axis.size, strides: axis.strides }
                }
                _ => {
                    outer[rank] = *axis;
                    rank += 1;
                }
            }
        }
        Broadcast { outer, rank, columns }
    }

    /// How many rows the output has.
    pub fn rows(&self) -> usize {
        self.outer[..self.rank].iter().map(|axis| axis.size).product()
    }

    /// How many elements a row has.
    pub fn columns(&self) -> usize {
        self.columns.size
    }

    /// Which elements of the operands meet in the output's element `index`.
    pub fn pair(&self, index: usize) -> [usize; N] {
        let starts = self.offsets(index / self.columns.size.max(1));
        let column = index % self.columns.size.max(1);
        std::array::from_fn(|operand| starts[operand] + column * self.columns.strides[operand])
    }

    /// The operands' steps along a row: 1, or 0 for one element that meets the whole row.
    pub(super) fn column_strides(&self) -> [usize; N] {
        self.columns.strides
    }

    /// How many rows follow each other at equal steps, counted from row 0.
    pub(super) fn turn(&self) -> usize {
        self.outer[..self.rank].last().map_or(1, |axis| axis.size)
    }

    /// The operands' steps from row to row within a turn.
    pub(super) fn row_strides(&self) -> [usize; N] {
        self.outer[..self.rank].last().map_or([0; N], |axis| axis.strides)
    }

    /// Where the operands' elements for `row` begin.
    #[inline(always)]
    pub(super) fn offsets(&self, row: usize) -> [usize; N] {
        let (mut rest, mut offsets) = (row, [0; N]);
        for axis in self.outer[..self.rank].iter().rev() {
            let at = rest % axis.size;
            rest /= axis.size;
            for (offset, stride) in offsets.iter_mut().zip(axis.strides) {
                *offset += at * stride;
            }
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The offset of the operand of `shape` that meets the output's element at `index`, as numpy defines it.
    fn reference(shape: &[usize], output: &[usize], mut index: usize) -> usize {
        let mut offset = 0;
        let mut stride = 1;
        for back in 1..=output.len() {
            let at = index % output[output.len() - back];
            index /= output[output.len() - back];
            if back <= shape.len() {
                let size = shape[shape.len() - back];
                offset += if size == 1 { 0 } else { at * stride };
                stride *= size;
            }
        }
        offset
    }

    proptest! {
        #[test]
        fn every_element_meets_the_elements_that_numpy_says(
            output in proptest::collection::vec(1usize..4, 1..6), mask_a in any::<u8>(), mask_b in any::<u8>(), drop_a in 0usize..3, drop_b in 0usize..3, keep_last: bool
        ) {
            let narrowed = |mask: u8, drop: usize| -> Vec<usize> {
                let kept = output.iter().enumerate().map(|(axis, size)| if mask >> axis & 1 == 1 { 1 } else { *size });
                kept.skip(drop.min(output.len() - 1)).collect()
            };
            let (a, b) = (narrowed(mask_a, drop_a), narrowed(mask_b, drop_b));
            let rank = a.len().max(b.len());
            let at = |shape: &[usize], back: usize| if back <= shape.len() { shape[shape.len() - back] } else { 1 };
            let output: Vec<usize> = (1..=rank).rev().map(|back| at(&a, back).max(at(&b, back))).collect();
            let broadcast = Broadcast::new(&a, &b, keep_last).unwrap();
            prop_assert_eq!(broadcast.rows() * broadcast.columns(), output.iter().product::<usize>());
            prop_assert!(!keep_last || broadcast.columns() == output[rank - 1]);
            for index in 0..output.iter().product() {
                prop_assert_eq!(broadcast.pair(index), [reference(&a, &output, index), reference(&b, &output, index)]);
            }
        }
    }

    #[test]
    fn tensors_of_one_shape_are_one_row() {
        assert_eq!(Broadcast::new(&[2, 3, 4], &[2, 3, 4], false).unwrap().columns(), 24);
        assert_eq!(Broadcast::new(&[2, 3, 4], &[], false).unwrap().columns(), 24);
        assert_eq!(Broadcast::new(&[2, 3, 4], &[4], false).unwrap().rows(), 6);
    }

    #[test]
    fn three_tensors_meet_as_numpy_says() {
        let shapes: [&[usize]; 3] = [&[2, 1, 3], &[4, 1], &[3]];
        let broadcast = Broadcast::of(shapes, false).unwrap();
        assert_eq!(broadcast.rows() * broadcast.columns(), 24);
        for index in 0..24 {
            assert_eq!(broadcast.pair(index), shapes.map(|shape| reference(shape, &[2, 4, 3], index)));
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert_eq!(Broadcast::new(&[2, 3], &[2], false), None);
        assert_eq!(Broadcast::new(&[1; MAX_RANK + 1], &[1], false), None);
    }
}
