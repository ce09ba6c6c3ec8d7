//! Geometry of windows that slide over an image: which taps of a window lie inside. It holds sizes and no data; padding
//! has been made explicit. Convolutions and poolings share it.

use std::ops::Range;

/// A window over images of one size. Pairs are `[height, width]`. Output pixel `o` covers the input pixels
/// `o * stride + i * dilation - pad` for `i` in `0..kernel`; those outside the image are padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The image's size.
    pub input: [usize; 2],
    /// The output's size.
    pub output: [usize; 2],
    /// The window's size.
    pub kernel: [usize; 2],
    /// Step from window to window.
    pub strides: [usize; 2],
    /// Step from tap to tap.
    pub dilations: [usize; 2],
    /// Padding above and to the left; what lies below and to the right follows from the output's size.
    pub pads: [usize; 2],
}

/// An output pixel of a batch of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixel {
    pub image: usize,
    pub y: usize,
    pub x: usize,
}

impl Window {
    /// Whether output pixel `o` is input pixel `o` and nothing else.
    pub fn is_identity(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0, 0] && self.input == self.output
    }

    /// How many taps.
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Output pixels of `images` images.
    pub fn output_pixels(&self, images: usize) -> usize {
        images * self.output[0] * self.output[1]
    }

    /// The pixel with position `row` among all output pixels of a batch.
    pub(crate) fn pixel(&self, row: usize) -> Pixel {
        let [height, width] = self.output;
        Pixel { image: row / (height * width), y: row / width % height, x: row % width }
    }

    /// The output pixel after `pixel`.
    pub(crate) fn next(&self, pixel: Pixel) -> Pixel {
        let Pixel { image, y, x } = pixel;
        if x + 1 < self.output[1] {
            Pixel { image, y, x: x + 1 }
        } else if y + 1 < self.output[0] {
            Pixel { image, y: y + 1, x: 0 }
        } else {
            Pixel { image: image + 1, y: 0, x: 0 }
        }
    }

    /// The taps along `axis` (0: height, 1: width) that lie inside the image for output position `at`.
    #[inline(always)]
    pub(crate) fn inside(&self, axis: usize, at: usize) -> Range<usize> {
        let (start, pad, dilation) = (at * self.strides[axis], self.pads[axis], self.dilations[axis]);
        let first = pad.saturating_sub(start).div_ceil(dilation);
        let end = (self.input[axis] + pad).saturating_sub(start).div_ceil(dilation).min(self.kernel[axis]);
        first.min(end)..end
    }

    /// Where tap `tap`, which lies inside, meets the image along `axis`.
    #[inline(always)]
    pub(crate) fn position(&self, axis: usize, at: usize, tap: usize) -> usize {
        at * self.strides[axis] + tap * self.dilations[axis] - self.pads[axis]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn taps_inside_are_exactly_those_that_meet_the_image(
            input in 1usize..9, output in 1usize..9, kernel in 1usize..5, stride in 1usize..4, dilation in 1usize..4, pad in 0usize..6, at in 0usize..9
        ) {
            let window = Window { input: [input, 1], output: [output, 1], kernel: [kernel, 1], strides: [stride, 1], dilations: [dilation, 1], pads: [pad, 0] };
            let meets = |tap: &usize| {
                let position = (at * stride + tap * dilation) as i64 - pad as i64;
                (0..input as i64).contains(&position)
            };
            let expected: Vec<usize> = (0..kernel).filter(meets).collect();
            let found: Vec<usize> = window.inside(0, at).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn pixels_follow_each_other_through_images() {
        let window =
            Window { input: [4, 3], output: [4, 3], kernel: [1, 1], strides: [1, 1], dilations: [1, 1], pads: [0, 0] };
        let mut pixel = window.pixel(0);
        for row in 0..30 {
            assert_eq!(pixel, window.pixel(row));
            pixel = window.next(pixel);
        }
    }
}
