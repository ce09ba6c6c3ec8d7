//! Puts blocks of columns back into images, the opposite of im2col: every pixel is the sum of what the blocks that cover it hold
//! for it. Any number of spatial axes. A pixel's sum is made in the order of the block's elements.

use std::ops::Range;

use crate::float::{Element, Floats, FloatsMut, same_float_type};
use crate::isa::{Instructions, Isa, Kernel};

/// One spatial axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockAxis {
    /// The image's size.
    pub image: usize,
    /// A block's size.
    pub block: usize,
    /// How many blocks there are along the axis.
    pub blocks: usize,
    /// Step from element to element in a block.
    pub dilation: usize,
    /// Step from block to block.
    pub stride: usize,
    /// Padding before the image.
    pub pad: usize,
}

/// Columns `[N, C * block, blocks]` become images `[N, C, image]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Col2Im {
    /// The spatial axes, outermost first.
    pub axes: Vec<BlockAxis>,
}

impl Col2Im {
    /// Pixels of an image's channel.
    pub fn pixels(&self) -> usize {
        self.axes.iter().map(|axis| axis.image).product()
    }

    /// Elements of a block.
    pub fn block_elements(&self) -> usize {
        self.axes.iter().map(|axis| axis.block).product()
    }

    /// Computes the elements `elements` of `out`; all tensors are whole.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, isa: Isa, elements: Range<usize>, input: Floats<'_>, out: FloatsMut<'_>) {
        same_float_type!(input, out, |input, out| isa.run(Sum { geometry: self, elements, input, out }));
    }

    /// Which block holds the pixel as its element `element`; `None` when none does.
    fn block_at(&self, mut pixel: usize, mut element: usize) -> Option<usize> {
        let (mut index, mut stride) = (0, 1);
        for axis in self.axes.iter().rev() {
            let (at, tap) = (pixel % axis.image, element % axis.block);
            pixel /= axis.image;
            element /= axis.block;
            let start = (at + axis.pad).checked_sub(tap * axis.dilation)?;
            let block = start / axis.stride;
            if !start.is_multiple_of(axis.stride) || block >= axis.blocks {
                return None;
            }
            index += block * stride;
            stride *= axis.blocks;
        }
        Some(index)
    }
}

struct Sum<'a, E> {
    geometry: &'a Col2Im,
    elements: Range<usize>,
    input: &'a [E],
    out: &'a mut [E],
}

impl<E: Element> Kernel for Sum<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let (pixels, taps) = (self.geometry.pixels(), self.geometry.block_elements());
        let blocks: usize = self.geometry.axes.iter().map(|axis| axis.blocks).product();
        for at in self.elements {
            let (channel, pixel) = (at / pixels, at % pixels);
            let mut sum = 0.0;
            for element in 0..taps {
                if let Some(block) = self.geometry.block_at(pixel, element) {
                    sum += self.input[(channel * taps + element) * blocks + block].to_f32();
                }
            }
            E::narrow(isa, &[sum], &mut self.out[at..at + 1]);
        }
    }
}
