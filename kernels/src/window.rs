//! Geometry of windows that slide over an image: which taps of a window lie inside. It holds sizes and no data; padding
//! has been made explicit. Convolutions and poolings share it. Sequences and flat images are volumes of depth 1.

use std::ops::Range;

/// A window over images of one size. Triples are `[depth, height, width]`. Output pixel `o` covers the input pixels
/// `o * stride + i * dilation - pad` for `i` in `0..kernel`; those outside the image are padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The image's size.
    pub input: [usize; 3],
    /// The output's size.
    pub output: [usize; 3],
    /// The window's size.
    pub kernel: [usize; 3],
    /// Step from window to window.
    pub strides: [usize; 3],
    /// Step from tap to tap.
    pub dilations: [usize; 3],
    /// Padding in front of the first pixel; what lies behind the last follows from the output's size.
    pub pads: [usize; 3],
}

/// An output pixel of a batch of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixel {
    pub image: usize,
    /// Position along each axis.
    pub at: [usize; 3],
}

impl Window {
    /// Whether output pixel `o` is input pixel `o` and nothing else.
    pub fn is_identity(&self) -> bool {
        self.kernel == [1; 3] && self.strides == [1; 3] && self.pads == [0; 3] && self.input == self.output
    }

    /// How many taps.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Output pixels of `images` images.
    pub fn output_pixels(&self, images: usize) -> usize {
        images * self.output.iter().product::<usize>()
    }

    /// Pixels of one image.
    pub(crate) fn input_pixels(&self) -> usize {
        self.input.iter().product()
    }

    /// The pixel with position `row` among all output pixels of a batch.
    pub(crate) fn pixel(&self, row: usize) -> Pixel {
        let [depth, height, width] = self.output;
        let (line, x) = (row / width, row % width);
        let (plane, y) = (line / height, line % height);
        Pixel { image: plane / depth, at: [plane % depth, y, x] }
    }

    /// The output pixel after `pixel`.
    pub(crate) fn next(&self, mut pixel: Pixel) -> Pixel {
        for axis in (0..3).rev() {
            pixel.at[axis] += 1;
            if pixel.at[axis] < self.output[axis] {
                return pixel;
            }
            pixel.at[axis] = 0;
        }
        Pixel { image: pixel.image + 1, ..pixel }
    }

    /// The position among all pixels of a batch of the one at `at` of image number `image`.
    #[inline(always)]
    pub(crate) fn input_pixel(&self, image: usize, at: [usize; 3]) -> usize {
        ((image * self.input[0] + at[0]) * self.input[1] + at[1]) * self.input[2] + at[2]
    }

    /// The taps along `axis` (0: depth, 1: height, 2: width) that lie inside the image for output position `at`.
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
            let window = Window { input: [input, 1, 1], output: [output, 1, 1], kernel: [kernel, 1, 1], strides: [stride, 1, 1], dilations: [dilation, 1, 1], pads: [pad, 0, 0] };
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
        let window = Window {
            input: [2, 4, 3],
            output: [2, 4, 3],
            kernel: [1; 3],
            strides: [1; 3],
            dilations: [1; 3],
            pads: [0; 3],
        };
        let mut pixel = window.pixel(0);
        for row in 0..60 {
            assert_eq!(pixel, window.pixel(row));
            pixel = window.next(pixel);
        }
    }
}
