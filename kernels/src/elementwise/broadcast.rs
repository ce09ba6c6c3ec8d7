//! How the elements of two tensors meet under numpy's broadcasting, worked out once: the output as rows, and for each row
//! where the operands' rows begin. It touches no data.

use super::MAX_RANK;

/// Two tensors broadcast to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broadcast {
    /// Dimensions above the rows, outermost first: size and the operands' strides.
    outer: [Axis; MAX_RANK],
    rank: usize,
    /// The rows themselves.
    columns: Axis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    strides: [usize; 2],
}

impl Axis {
    const UNIT: Axis = Axis { size: 1, strides: [0, 0] };

    /// Whether this axis and the one inside it are one for both operands.
    fn joins(&self, inner: &Axis) -> bool {
        (0..2).all(|operand| self.strides[operand] == inner.strides[operand] * inner.size)
    }
}

impl Broadcast {
    /// The broadcast of dense tensors of shapes `a` and `b`; `None` when the shapes do not fit or have more than
    /// [`MAX_RANK`] dimensions. With `keep_last` a row is the output's last dimension; without, as much as lies flat.
    pub fn new(a: &[usize], b: &[usize], keep_last: bool) -> Option<Broadcast> {
        let rank = a.len().max(b.len());
        if rank > MAX_RANK {
            return None;
        }
        let mut axes = [Axis::UNIT; MAX_RANK];
        let mut next = [1, 1];
        for back in 1..=rank {
            let sizes = [a, b].map(|shape| if back <= shape.len() { shape[shape.len() - back] } else { 1 });
            let size = match sizes {
                [a, b] if a == b || b == 1 => a,
                [1, b] => b,
                _ => return None,
            };
            let strides = std::array::from_fn(|operand| if sizes[operand] == 1 { 0 } else { next[operand] });
            axes[rank - back] = Axis { size, strides };
            for (next, size) in next.iter_mut().zip(sizes) {
                *next *= size;
            }
        }
        Some(Broadcast::collapse(&axes[..rank], keep_last))
    }

    /// Joins axes that lie flat for both operands, from the inside out.
    fn collapse(axes: &[Axis], keep_last: bool) -> Broadcast {
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
    pub fn pair(&self, index: usize) -> [usize; 2] {
        let starts = self.offsets(index / self.columns.size.max(1));
        let column = index % self.columns.size.max(1);
        std::array::from_fn(|operand| starts[operand] + column * self.columns.strides[operand])
    }

    /// The operands' steps along a row: 1, or 0 for one element that meets the whole row.
    pub(super) fn column_strides(&self) -> [usize; 2] {
        self.columns.strides
    }

    /// Where the operands' elements for `row` begin.
    #[inline(always)]
    pub(super) fn offsets(&self, row: usize) -> [usize; 2] {
        let (mut rest, mut offsets) = (row, [0, 0]);
        for axis in self.outer[..self.rank].iter().rev() {
            let at = rest % axis.size;
            rest /= axis.size;
            offsets = [offsets[0] + at * axis.strides[0], offsets[1] + at * axis.strides[1]];
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
    fn shapes_that_do_not_fit_are_refused() {
        assert_eq!(Broadcast::new(&[2, 3], &[2], false), None);
        assert_eq!(Broadcast::new(&[1; MAX_RANK + 1], &[1], false), None);
    }
}
