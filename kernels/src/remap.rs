//! Copies a tensor into another axis by axis: position `o` of an output axis shows one position of the same input axis, or
//! a fill. Slices, paddings, broadcasts and enlargements by whole pixels are all such maps. Elements are bits of a size; axes
//! that are kept whole move as one.

use std::ops::Range;

use crate::element_bits::by_element_size;
use bytemuck::Pod;

/// What an output axis shows, as stretches of evenly spaced input positions. Small however long the axis is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisMap {
    stretches: Vec<Stretch>,
    size: usize,
    /// One more than the largest input position.
    needs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    count: usize,
    from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Fill,
    Input { first: usize, step: isize },
}

impl AxisMap {
    /// The whole of an axis of `size` positions.
    pub fn whole(size: usize) -> AxisMap {
        AxisMap::new((0..size).map(Some))
    }

    /// Output position `o` shows input position `positions[o]`, or the fill where there is none.
    pub fn new(positions: impl IntoIterator<Item = Option<usize>>) -> AxisMap {
        let mut map = AxisMap { stretches: Vec::new(), size: 0, needs: 0 };
        for position in positions {
            map.push(position);
        }
        map
    }

    fn push(&mut self, position: Option<usize>) {
        self.size += 1;
        self.needs = self.needs.max(position.map_or(0, |position| position + 1));
        if let Some(last) = self.stretches.last_mut() {
            let continues = match (&mut last.from, position) {
                (From::Fill, None) => true,
                (From::Input { first, step }, Some(position)) => {
                    if last.count == 1 {
                        *step = position.wrapping_sub(*first) as isize;
                    }
                    first.wrapping_add_signed(step.wrapping_mul(last.count as isize)) == position
                }
                _ => false,
            };
            if continues {
                last.count += 1;
                return;
            }
        }
        let from = position.map_or(From::Fill, |first| From::Input { first, step: 1 });
        self.stretches.push(Stretch { count: 1, from });
    }

    /// How many output positions.
    pub fn size(&self) -> usize {
        self.size
    }

    fn is_whole(&self, input_size: usize) -> bool {
        self.size == input_size
            && matches!(self.stretches[..], [] | [Stretch { from: From::Input { first: 0, step: 1 }, .. }])
    }
}

/// A copy, worked out once for a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remap {
    axes: Vec<Axis>,
    /// Elements that move together.
    block: usize,
    input_elements: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    map: AxisMap,
    /// Elements between neighbours in the input.
    stride: usize,
}

/// Where an output line stands on one of the axes above it.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    stretch: usize,
    within: usize,
}

impl Remap {
    /// Output axis `i` shows axis `i` of `shape` through `maps[i]`. `None` when they do not fit or a map reaches beyond its axis.
    pub fn new(shape: &[usize], maps: Vec<AxisMap>) -> Option<Remap> {
        if shape.len() != maps.len() || maps.iter().zip(shape).any(|(map, size)| map.needs > *size) {
            return None;
        }
        let mut remap = Remap { axes: Vec::new(), block: 1, input_elements: shape.iter().product() };
        let mut whole = 1;
        let mut stride = 1;
        for (map, &size) in maps.into_iter().zip(shape).rev() {
            if map.is_whole(size) {
                whole *= size;
            } else {
                remap.push_whole(whole, stride / whole.max(1));
                whole = 1;
                remap.axes.push(Axis { map, stride });
            }
            stride *= size;
        }
        remap.push_whole(whole, stride / whole.max(1));
        if remap.axes.is_empty() {
            remap.axes.push(Axis { map: AxisMap::whole(1), stride: 1 });
        }
        remap.axes.reverse();
        Some(remap)
    }

    /// Adds axes that are kept whole, from the inside out: the innermost are the block.
    fn push_whole(&mut self, size: usize, stride: usize) {
        match (self.axes.is_empty(), size) {
            (_, 1) => {}
            (true, _) => self.block = size,
            (false, _) => self.axes.push(Axis { map: AxisMap::whole(size), stride }),
        }
    }

    /// Lines of the output: runs of whole elements that are written at a time.
    pub fn lines(&self) -> usize {
        self.axes[..self.axes.len() - 1].iter().map(|axis| axis.map.size).product()
    }

    /// Elements of a line.
    pub fn line_elements(&self) -> usize {
        self.axes.last().map_or(1, |axis| axis.map.size) * self.block
    }

    /// Bytes that it takes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let stretches = self.axes.iter().map(|axis| size_of_val(&*axis.map.stretches)).sum::<usize>();
        size_of_val(&*self.axes) + stretches
    }

    /// Writes the lines `lines` of `out` from `input`, both whole tensors with elements of `size` bytes (1, 2, 4 or 8), aligned for
    /// them; `fill` is one element.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, size: usize, lines: Range<usize>, input: &[u8], fill: &[u8], out: &mut [u8]) {
        by_element_size!(size, T => {
            let fill = bytemuck::pod_read_unaligned::<T>(fill);
            self.typed::<T>(lines, bytemuck::cast_slice(input), fill, bytemuck::cast_slice_mut(out));
        });
    }

    fn typed<T: Pod>(&self, lines: Range<usize>, input: &[T], fill: T, out: &mut [T]) {
        let length = self.line_elements();
        assert!(input.len() == self.input_elements && out.len() == self.lines() * length, "a copy of other tensors");
        let out = &mut out[lines.start * length..lines.end * length];
        if out.is_empty() {
            return;
        }
        let mut cursors = self.cursors(lines.start);
        for line in out.chunks_exact_mut(length) {
            self.line(self.base(&cursors), input, fill, line);
            self.advance(&mut cursors);
        }
    }

    fn cursors(&self, mut line: usize) -> Vec<Cursor> {
        let outer = &self.axes[..self.axes.len() - 1];
        let mut cursors = vec![Cursor::default(); outer.len()];
        for (cursor, axis) in cursors.iter_mut().zip(outer).rev() {
            cursor.within = line % axis.map.size;
            line /= axis.map.size;
            while cursor.within >= axis.map.stretches[cursor.stretch].count {
                cursor.within -= axis.map.stretches[cursor.stretch].count;
                cursor.stretch += 1;
            }
        }
        cursors
    }

    fn advance(&self, cursors: &mut [Cursor]) {
        for (cursor, axis) in cursors.iter_mut().zip(&self.axes).rev() {
            cursor.within += 1;
            if cursor.within < axis.map.stretches[cursor.stretch].count {
                return;
            }
            cursor.within = 0;
            cursor.stretch += 1;
            if cursor.stretch < axis.map.stretches.len() {
                return;
            }
            cursor.stretch = 0;
        }
    }

    /// Where the line begins in the input; `None` when it is all fill.
    fn base(&self, cursors: &[Cursor]) -> Option<usize> {
        let mut base = 0;
        for (cursor, axis) in cursors.iter().zip(&self.axes) {
            let From::Input { first, step } = axis.map.stretches[cursor.stretch].from else { return None };
            base += first.wrapping_add_signed(step * cursor.within as isize) * axis.stride;
        }
        Some(base)
    }

    fn line<T: Pod>(&self, base: Option<usize>, input: &[T], fill: T, line: &mut [T]) {
        let (Some(base), Some(axis)) = (base, self.axes.last()) else { return line.fill(fill) };
        let mut rest = line;
        for stretch in &axis.map.stretches {
            let (out, behind) = rest.split_at_mut(stretch.count * self.block);
            rest = behind;
            match stretch.from {
                From::Fill => out.fill(fill),
                From::Input { first, step } => {
                    self.stretch(&input[base..], first * axis.stride, step * axis.stride as isize, out);
                }
            }
        }
    }

    /// Blocks from `first` on, each `step` elements from the last.
    fn stretch<T: Pod>(&self, input: &[T], first: usize, step: isize, out: &mut [T]) {
        let block = self.block;
        if step == block as isize {
            out.copy_from_slice(&input[first..first + out.len()]);
        } else if block == 1 && step == 0 {
            out.fill(input[first]);
        } else if block == 1 {
            let mut at = first;
            for out in out {
                *out = input[at];
                at = at.wrapping_add_signed(step);
            }
        } else {
            let mut at = first;
            for out in out.chunks_exact_mut(block) {
                out.copy_from_slice(&input[at..at + block]);
                at = at.wrapping_add_signed(step);
            }
        }
    }
}

#[cfg(test)]
mod tests;
