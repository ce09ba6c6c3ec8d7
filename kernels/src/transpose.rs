//! Moves the axes of a tensor. Elements are bits of a size; nothing is computed. Axes that stay together are moved as one,
//! so between NHWC and NCHW it is a batch of plain matrix transpositions, done in small squares.

use bytemuck::Pod;

use crate::element_bits::by_element_size;

/// The most axes.
const MAX_RANK: usize = crate::elementwise::MAX_RANK;

/// Side of the squares that are moved at a time: 16 rows of both tensors stay in the first-level cache.
const SQUARE: usize = 16;

/// A permutation of axes, worked out once for a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transpose {
    rank: usize,
    /// Sizes of the output's axes, outermost first.
    sizes: [usize; MAX_RANK],
    /// Steps in the input along the output's axes.
    steps: [usize; MAX_RANK],
}

impl Transpose {
    /// Output axis `i` is input axis `permutation[i]` of `shape`. `None` when that is no permutation of at most 8 axes.
    pub fn new(shape: &[usize], permutation: &[usize]) -> Option<Transpose> {
        let mut seen = [false; MAX_RANK];
        if shape.len() != permutation.len() || shape.len() > MAX_RANK {
            return None;
        }
        let mut transpose = Transpose { rank: 0, sizes: [1; MAX_RANK], steps: [0; MAX_RANK] };
        for &axis in permutation {
            if axis >= shape.len() || std::mem::replace(&mut seen[axis], true) {
                return None;
            }
            let step = shape[axis + 1..].iter().product();
            transpose.push(shape[axis], step);
        }
        if transpose.rank == 0 {
            transpose.push_axis(1, 1);
        }
        Some(transpose)
    }

    /// Adds an axis inside the others, or to the last of them if it continues it.
    fn push(&mut self, size: usize, step: usize) {
        if size == 1 {
            return;
        }
        if let Some(last) = self.rank.checked_sub(1)
            && self.steps[last] == size * step
        {
            self.sizes[last] *= size;
            self.steps[last] = step;
            return;
        }
        self.push_axis(size, step);
    }

    fn push_axis(&mut self, size: usize, step: usize) {
        self.sizes[self.rank] = size;
        self.steps[self.rank] = step;
        self.rank += 1;
    }

    /// How many elements.
    pub fn elements(&self) -> usize {
        self.sizes[..self.rank].iter().product()
    }

    /// Moves `input` to `out`, both of elements of `size` bytes (1, 2, 4 or 8) and aligned for them.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, size: usize, input: &[u8], out: &mut [u8]) {
        by_element_size!(size, T => self.typed::<T>(bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out)));
    }

    fn typed<T: Pod>(&self, input: &[T], out: &mut [T]) {
        assert!(input.len() == self.elements() && out.len() == self.elements(), "a transposition keeps all elements");
        if out.is_empty() {
            return;
        }
        let last = self.rank - 1;
        if self.steps[last] == 1 {
            let run = self.sizes[last];
            for (index, out) in out.chunks_exact_mut(run).enumerate() {
                let from = self.offset(last, index);
                out.copy_from_slice(&input[from..from + run]);
            }
        } else {
            self.squares(input, out);
        }
    }

    /// Where the input's element lies for position `index` of the output's first `axes` axes, zero in the others.
    fn offset(&self, axes: usize, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in (0..axes).rev() {
            offset += index % self.sizes[axis] * self.steps[axis];
            index /= self.sizes[axis];
        }
        offset
    }

    /// The innermost axis of the output is strided in the input: walk it together with the axis that is not.
    fn squares<T: Pod>(&self, input: &[T], out: &mut [T]) {
        let last = self.rank - 1;
        let columns = self.sizes[last];
        let step = self.steps[last];
        let near = (0..last).find(|axis| self.steps[*axis] == 1).unwrap_or(0);
        let rows = self.sizes[near];
        let row_length: usize = self.sizes[near + 1..self.rank].iter().product();
        let between: usize = self.sizes[near + 1..last].iter().product();
        for outer in 0..self.sizes[..near].iter().product() {
            for middle in 0..between {
                let from = self.offset(near, outer) + self.middle_offset(near, last, middle);
                let to = outer * rows * row_length + middle * columns;
                for first_row in (0..rows).step_by(SQUARE) {
                    for first in (0..columns).step_by(SQUARE) {
                        for row in first_row..(first_row + SQUARE).min(rows) {
                            for column in first..(first + SQUARE).min(columns) {
                                out[to + row * row_length + column] =
                                    input[from + row * self.steps[near] + column * step];
                            }
                        }
                    }
                }
            }
        }
    }

    fn middle_offset(&self, near: usize, last: usize, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in (near + 1..last).rev() {
            offset += index % self.sizes[axis] * self.steps[axis];
            index /= self.sizes[axis];
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, element by element.
    fn reference(shape: &[usize], permutation: &[usize], input: &[u32]) -> Vec<u32> {
        let sizes: Vec<usize> = permutation.iter().map(|axis| shape[*axis]).collect();
        let element = |mut index: usize| {
            let mut at = vec![0; shape.len()];
            for (axis, size) in sizes.iter().enumerate().rev() {
                at[permutation[axis]] = index % size;
                index /= size;
            }
            at.iter().zip(shape).fold(0, |offset, (at, size)| offset * size + at)
        };
        (0..input.len()).map(|index| input[element(index)]).collect()
    }

    fn shape_and_permutation() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
        proptest::collection::vec(1usize..6, 0..6).prop_flat_map(|shape| {
            let axes: Vec<usize> = (0..shape.len()).collect();
            (Just(shape), Just(axes).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn elements_land_where_the_definition_says((shape, permutation) in shape_and_permutation()) {
            let input: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
            let mut out = vec![0u32; input.len()];
            let transpose = Transpose::new(&shape, &permutation).unwrap();
            transpose.run(4, bytemuck::cast_slice(&input), bytemuck::cast_slice_mut(&mut out));
            prop_assert_eq!(out, reference(&shape, &permutation, &input));
        }
    }

    #[test]
    fn larger_images_go_to_channels_first_and_back() {
        let shape = [2, 19, 33, 5];
        let input: Vec<u16> = (0..2 * 19 * 33 * 5).collect();
        let (mut there, mut back) = (vec![0u16; input.len()], vec![0u16; input.len()]);
        Transpose::new(&shape, &[0, 3, 1, 2]).unwrap().run(
            2,
            bytemuck::cast_slice(&input),
            bytemuck::cast_slice_mut(&mut there),
        );
        Transpose::new(&[2, 5, 19, 33], &[0, 2, 3, 1]).unwrap().run(
            2,
            bytemuck::cast_slice(&there),
            bytemuck::cast_slice_mut(&mut back),
        );
        assert_eq!(there[19 * 33], 1);
        assert_eq!(back, input);
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        for permutation in [&[0usize, 0][..], &[0], &[0, 2], &[0, 1, 2]] {
            assert_eq!(Transpose::new(&[2, 3], permutation), None);
        }
        assert_eq!(Transpose::new(&[1; 9], &[0, 1, 2, 3, 4, 5, 6, 7, 8]), None);
    }
}
