//! One-hot vectors: everywhere the one value, but the other at the index. Elements are bits of a size.

use std::ops::Range;

use crate::element_bits::by_element_size;
use crate::index::Indices;

/// Indices seen as `[outer, inner]` become `[outer, depth, inner]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneHot {
    /// Values of an index: negative ones count from the end, for others no element is the hot one.
    pub depth: usize,
    /// Indices inside the new axis.
    pub inner: usize,
}

impl OneHot {
    /// Writes the slices `slices` of `out`. `values` are two elements of `size` bytes: the common one, then the hot one.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, size: usize, slices: Range<usize>, indices: Indices<'_>, values: &[u8], out: &mut [u8]) {
        let OneHot { depth, inner } = *self;
        by_element_size!(size, T => {
            let (values, out): (&[T], &mut [T]) = (bytemuck::cast_slice(values), bytemuck::cast_slice_mut(out));
            for slice in slices {
                let out = &mut out[slice * depth * inner..(slice + 1) * depth * inner];
                out.fill(values[0]);
                for lane in 0..inner {
                    if let Ok(hot) = indices.resolve(slice * inner + lane, depth) {
                        out[hot * inner + lane] = values[1];
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_hot_and_nothing_else() {
        let mut out = [0u16; 12];
        let indices = Indices::I64(&[0, -1, 5, 1]);
        let values = bytemuck::cast_slice(&[3u16, 7]);
        OneHot { depth: 3, inner: 2 }.run(2, 0..2, indices, values, bytemuck::cast_slice_mut(&mut out));
        assert_eq!(out, [7, 3, 3, 3, 3, 7, 3, 3, 3, 7, 3, 3]);
    }
}
