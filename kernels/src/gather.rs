//! Picks parts of a tensor by indices: whole slices, single elements along an axis, or slices by index vectors. Elements are
//! bits of a size. Every index is checked before it is used.

use std::ops::Range;

use crate::element_bits::by_element_size;
use crate::index::{IndexError, Indices};

/// Slices of a tensor seen as `[outer, axis, inner]`: the output is `[outer, indices, inner]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gather {
    /// Elements before the axis.
    pub outer: usize,
    /// The axis's size.
    pub axis: usize,
    /// Elements of a slice that lie together.
    pub inner: usize,
}

impl Gather {
    /// Writes the rows `rows` of `out`, seen as `[outer * indices, inner]`. All tensors are whole, elements have `size` bytes.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(
        &self,
        size: usize,
        rows: Range<usize>,
        input: &[u8],
        indices: Indices<'_>,
        out: &mut [u8],
    ) -> Result<(), IndexError> {
        let bytes = self.inner * size;
        for row in rows {
            let position = indices.resolve(row % indices.len(), self.axis)?;
            let from = (row / indices.len() * self.axis + position) * bytes;
            out[row * bytes..(row + 1) * bytes].copy_from_slice(&input[from..from + bytes]);
        }
        Ok(())
    }
}

/// Single elements along an axis: the output has the indices' shape, and at each place the element that has the place's
/// coordinates but for the axis, where it has the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementsAlong {
    axis: usize,
    axis_size: usize,
    /// The shape of the indices.
    shape: Vec<usize>,
    /// The data's strides.
    strides: Vec<usize>,
}

impl ElementsAlong {
    /// Indices of shape `indices` into `data` along `axis`. `None` when they do not fit.
    pub fn new(data: &[usize], indices: &[usize], axis: usize) -> Option<ElementsAlong> {
        let fits = |(other, (indices, data)): (usize, (&usize, &usize))| other == axis || indices <= data;
        if data.len() != indices.len() || axis >= data.len() || !indices.iter().zip(data).enumerate().all(fits) {
            return None;
        }
        let strides = (0..data.len()).map(|axis| data[axis + 1..].iter().product()).collect();
        Some(ElementsAlong { axis, axis_size: data[axis], shape: indices.to_vec(), strides })
    }

    /// How many indices.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Calls `visit` with each place among `places` and the position in the data that its index means.
    pub(crate) fn each(
        &self,
        places: Range<usize>,
        indices: Indices<'_>,
        mut visit: impl FnMut(usize, usize),
    ) -> Result<(), IndexError> {
        let last = self.shape.len() - 1;
        let line = self.shape[last];
        let mut place = places.start;
        while place < places.end {
            let (base, first) = (self.base(place / line), place % line);
            let count = (line - first).min(places.end - place);
            for column in first..first + count {
                let index = indices.resolve(place, self.axis_size)?;
                let along = if last == self.axis { 0 } else { column };
                visit(place, base + along + index * self.strides[self.axis]);
                place += 1;
            }
        }
        Ok(())
    }

    /// Where line `line` of the indices begins in the data, but for the axis.
    fn base(&self, mut line: usize) -> usize {
        let mut base = 0;
        for axis in (0..self.shape.len() - 1).rev() {
            let at = line % self.shape[axis];
            line /= self.shape[axis];
            base += if axis == self.axis { 0 } else { at * self.strides[axis] };
        }
        base
    }

    /// Writes the elements `places` of `out`. All tensors are whole, elements have `size` bytes.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn gather(
        &self,
        size: usize,
        places: Range<usize>,
        input: &[u8],
        indices: Indices<'_>,
        out: &mut [u8],
    ) -> Result<(), IndexError> {
        by_element_size!(size, T => {
            let (input, out): (&[T], &mut [T]) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out));
            self.each(places, indices, |place, position| out[place] = input[position])
        })
    }
}

/// Slices by index vectors: the indices are `[batches, vectors, depth]`, the data `[batches, axes[0], .., axes[depth - 1], inner]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlicesAt {
    vectors: usize,
    axes: Vec<usize>,
    inner: usize,
}

impl SlicesAt {
    /// `vectors` index vectors a batch into the dimensions `axes`, with `inner` elements inside them.
    pub fn new(vectors: usize, axes: &[usize], inner: usize) -> SlicesAt {
        SlicesAt { vectors, axes: axes.to_vec(), inner }
    }

    /// Elements of a slice.
    pub fn slice_elements(&self) -> usize {
        self.inner
    }

    /// Where the slice that vector `vector` means begins in the data.
    #[inline(always)]
    pub(crate) fn position(&self, vector: usize, indices: Indices<'_>) -> Result<usize, IndexError> {
        let depth = self.axes.len();
        let mut position = vector / self.vectors;
        for (k, &size) in self.axes.iter().enumerate() {
            position = position * size + indices.resolve(vector * depth + k, size)?;
        }
        Ok(position * self.inner)
    }

    /// Writes the slices of the vectors `rows`, counted through all batches, to `out`. All tensors are whole.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn gather(
        &self,
        size: usize,
        rows: Range<usize>,
        input: &[u8],
        indices: Indices<'_>,
        out: &mut [u8],
    ) -> Result<(), IndexError> {
        let bytes = self.inner * size;
        for row in rows {
            let from = self.position(row, indices)? * size;
            out[row * bytes..(row + 1) * bytes].copy_from_slice(&input[from..from + bytes]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Pod;

    fn bytes<T: Pod>(values: &[T]) -> &[u8] {
        bytemuck::cast_slice(values)
    }

    #[test]
    fn slices_are_picked_along_an_axis_in_the_middle() {
        let input: Vec<u16> = (0..12).collect();
        let mut out = [0u16; 8];
        let gather = Gather { outer: 2, axis: 3, inner: 2 };
        gather.run(2, 0..3, bytes(&input), Indices::I32(&[2, -3]), bytemuck::cast_slice_mut(&mut out)).unwrap();
        assert_eq!(out, [4, 5, 0, 1, 10, 11, 0, 0]);
        let ended = gather.run(2, 0..4, bytes(&input), Indices::I64(&[0, 3]), bytemuck::cast_slice_mut(&mut out));
        assert_eq!(ended, Err(IndexError { index: 3, size: 3 }));
    }

    #[test]
    fn elements_are_picked_along_each_axis() {
        let input: Vec<u32> = (0..12).collect();
        for axis in 0..2 {
            let shape = [2, 3];
            let indices = [1i64, 0, -1, 0, 1, 1];
            let along = ElementsAlong::new(&[3, 4], &shape, axis).unwrap();
            let mut out = [0u32; 6];
            for part in [0..2, 2..6] {
                along
                    .gather(4, part, bytes(&input), Indices::I64(&indices), bytemuck::cast_slice_mut(&mut out))
                    .unwrap();
            }
            let expected: Vec<u32> = (0..6)
                .map(|place| {
                    let size = [3i64, 4][axis];
                    let index = ((indices[place] + size) % size) as usize;
                    let at = if axis == 0 { index * 4 + place % 3 } else { place / 3 * 4 + index };
                    input[at]
                })
                .collect();
            assert_eq!(out[..], expected);
        }
        assert_eq!(ElementsAlong::new(&[3, 4], &[4, 4], 1), None, "more rows of indices than of data");
        assert_eq!(ElementsAlong::new(&[3], &[3, 1], 0), None);
    }

    #[test]
    fn slices_are_picked_by_vectors_within_their_batch() {
        let input: Vec<u64> = (0..24).collect();
        let at = SlicesAt::new(2, &[2, 3], 2);
        let indices = Indices::I64(&[0, 1, 1, 2, 1, -1, 0, 0]);
        let mut out = [0u64; 8];
        at.gather(8, 0..4, bytes(&input), indices, bytemuck::cast_slice_mut(&mut out)).unwrap();
        assert_eq!(out, [2, 3, 10, 11, 22, 23, 12, 13]);
        let beyond = Indices::I64(&[0, 3, 1, 2, 1, -1, 0, 0]);
        assert!(at.gather(8, 0..4, bytes(&input), beyond, bytemuck::cast_slice_mut(&mut out)).is_err());
    }
}
