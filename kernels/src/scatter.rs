//! Writes updates into a copy of a tensor at places that indices name: single elements along an axis, slices by index
//! vectors, or a run of a sequence. What is there is replaced, or combined with the update, in the updates' order. Every index
//! is checked before it is used.

use bytemuck::Pod;
use half::{bf16, f16};

use crate::element_bits::by_element_size;
use crate::gather::{ElementsAlong, SlicesAt};
use crate::index::{IndexError, Indices};

/// How an update meets the element that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The sum; integers wrap.
    Add,
    /// The product; integers wrap.
    Multiply,
    /// The larger; NaN if one of them is.
    Max,
    /// The smaller; NaN if one of them is.
    Min,
}

/// A number that updates can be combined with.
pub trait Combinable: Pod {
    /// The two combined, rounded once.
    fn combined(self, update: Self, how: Combine) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Combinable for $type {
            #[inline(always)]
            fn combined(self, update: Self, how: Combine) -> Self {
                match how {
                    Combine::Add => self.wrapping_add(update),
                    Combine::Multiply => self.wrapping_mul(update),
                    Combine::Max => self.max(update),
                    Combine::Min => self.min(update),
                }
            }
        })*
    };
}
integers!(u8 u16 u32 u64 i8 i16 i32 i64);

macro_rules! floats {
    ($($type:ty)*) => {
        $(impl Combinable for $type {
            #[inline(always)]
            fn combined(self, update: Self, how: Combine) -> Self {
                match how {
                    Combine::Add => self + update,
                    Combine::Multiply => self * update,
                    Combine::Max => if self > update || self.is_nan() { self } else { update },
                    Combine::Min => if self < update || self.is_nan() { self } else { update },
                }
            }
        })*
    };
}
floats!(f32 f64 f16 bf16);

impl ElementsAlong {
    /// Replaces the elements of `out` at each place's index by the place's update. Elements have `size` bytes.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn scatter(&self, size: usize, indices: Indices<'_>, updates: &[u8], out: &mut [u8]) -> Result<(), IndexError> {
        by_element_size!(size, T => {
            let (updates, out): (&[T], &mut [T]) = (bytemuck::cast_slice(updates), bytemuck::cast_slice_mut(out));
            self.each(0..self.elements(), indices, |place, position| out[position] = updates[place])
        })
    }

    /// Combines instead of replacing.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn combine<T: Combinable>(
        &self,
        how: Combine,
        indices: Indices<'_>,
        updates: &[T],
        out: &mut [T],
    ) -> Result<(), IndexError> {
        self.each(0..self.elements(), indices, |place, position| {
            out[position] = out[position].combined(updates[place], how);
        })
    }
}

impl SlicesAt {
    /// Replaces the slices of `out` that the first `vectors` vectors mean by the updates. Elements have `size` bytes.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn scatter(
        &self,
        size: usize,
        vectors: usize,
        indices: Indices<'_>,
        updates: &[u8],
        out: &mut [u8],
    ) -> Result<(), IndexError> {
        let bytes = self.slice_elements() * size;
        for vector in 0..vectors {
            let to = self.position(vector, indices)? * size;
            out[to..to + bytes].copy_from_slice(&updates[vector * bytes..(vector + 1) * bytes]);
        }
        Ok(())
    }

    /// Combines instead of replacing.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn combine<T: Combinable>(
        &self,
        how: Combine,
        vectors: usize,
        indices: Indices<'_>,
        updates: &[T],
        out: &mut [T],
    ) -> Result<(), IndexError> {
        let slice = self.slice_elements();
        for vector in 0..vectors {
            let to = self.position(vector, indices)?;
            let updates = &updates[vector * slice..(vector + 1) * slice];
            for (out, update) in out[to..to + slice].iter_mut().zip(updates) {
                *out = out.combined(*update, how);
            }
        }
        Ok(())
    }
}

/// New entries of caches seen as `[batches, outer, length, inner]`, each batch's from its own position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUpdate {
    /// Sequences of a batch.
    pub outer: usize,
    /// Entries that a cache holds.
    pub length: usize,
    /// Entries of an update, at most `length`.
    pub update_length: usize,
    /// Bytes of an entry.
    pub entry_bytes: usize,
    /// Whether entries beyond the end go on at the beginning, instead of being refused.
    pub circular: bool,
}

impl CacheUpdate {
    /// Writes `updates` into `out`, which holds the caches. `starts` has one position for each batch; without, it is 0.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, starts: Option<Indices<'_>>, updates: &[u8], out: &mut [u8]) -> Result<(), IndexError> {
        let (update, cache) = (self.update_length * self.entry_bytes, self.length * self.entry_bytes);
        if update == 0 || cache == 0 {
            return Ok(());
        }
        let sequences = updates.chunks_exact(update).zip(out.chunks_exact_mut(cache));
        for (sequence, (updates, cache)) in sequences.enumerate() {
            let start = starts.map_or(0, |starts| starts.raw(sequence / self.outer));
            for (k, entry) in updates.chunks_exact(self.entry_bytes).enumerate() {
                let at = self.position(start, k)? * self.entry_bytes;
                cache[at..at + self.entry_bytes].copy_from_slice(entry);
            }
        }
        Ok(())
    }

    fn position(&self, start: i64, entry: usize) -> Result<usize, IndexError> {
        let refused = IndexError { index: start, size: self.length };
        let wanted = start.checked_add(entry as i64).ok_or(refused)?;
        let wanted = if self.circular { wanted.rem_euclid(self.length as i64) } else { wanted };
        usize::try_from(wanted).ok().filter(|at| *at < self.length).ok_or(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_replaced_along_an_axis() {
        let along = ElementsAlong::new(&[2, 3], &[2, 2], 1).unwrap();
        let mut out = [0u16; 6];
        let indices = Indices::I64(&[2, 0, -1, 1]);
        along.scatter(2, indices, bytemuck::cast_slice(&[1u16, 2, 3, 4]), bytemuck::cast_slice_mut(&mut out)).unwrap();
        assert_eq!(out, [2, 0, 1, 0, 4, 3]);
        let beyond = Indices::I64(&[2, 0, -4, 1]);
        assert!(along.scatter(2, beyond, &[0; 8], bytemuck::cast_slice_mut(&mut out)).is_err());
    }

    #[test]
    fn elements_are_combined_in_the_updates_order() {
        let along = ElementsAlong::new(&[3], &[4], 0).unwrap();
        let indices = Indices::I32(&[1, 1, 1, 0]);
        let updates = [2.0f32, -3.0, 5.0, f32::NAN];
        let run = |how| {
            let mut out = [1.0f32, 1.0, 1.0];
            along.combine(how, indices, &updates, &mut out).unwrap();
            assert!(out[0].is_nan() && out[2] == 1.0);
            out[1]
        };
        let found = [Combine::Add, Combine::Multiply, Combine::Max, Combine::Min].map(run);
        assert_eq!(found, [5.0, -30.0, 5.0, -3.0]);
    }

    #[test]
    fn slices_are_replaced_and_combined() {
        let at = SlicesAt::new(2, &[3], 2);
        let indices = Indices::I64(&[2, -3]);
        let mut out = [1i64; 6];
        at.combine(Combine::Multiply, 2, indices, &[5, 6, 7, 8], &mut out).unwrap();
        assert_eq!(out, [7, 8, 1, 1, 5, 6]);
        at.scatter(8, 2, indices, bytemuck::cast_slice(&[1i64, 2, 3, 4]), bytemuck::cast_slice_mut(&mut out)).unwrap();
        assert_eq!(out, [3, 4, 1, 1, 1, 2]);
    }

    #[test]
    fn caches_are_updated_from_each_batchs_position() {
        let mut update = CacheUpdate { outer: 1, length: 4, update_length: 2, entry_bytes: 1, circular: false };
        let mut out = [0; 8];
        update.run(Some(Indices::I64(&[0, 2])), &[1, 2, 3, 4], &mut out).unwrap();
        assert_eq!(out, [1, 2, 0, 0, 0, 0, 3, 4]);
        assert!(update.run(Some(Indices::I64(&[3, 0])), &[1, 2, 3, 4], &mut out).is_err());
        update.circular = true;
        update.run(Some(Indices::I64(&[3, 0])), &[5, 6, 7, 8], &mut out).unwrap();
        assert_eq!(out, [6, 2, 0, 5, 7, 8, 3, 4]);
    }
}
