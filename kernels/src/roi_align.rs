//! Pools regions of interest to a fixed size from samples between pixels (Mask R-CNN's RoiAlign). Images are NHWC. Which
//! image a region lies in comes with the request and is checked.

use std::ops::Range;

use crate::float::{CHUNK, Element, Floats, FloatsMut, same_float_type};
use crate::index::{IndexError, Indices};
use crate::isa::{Instructions, Isa, Kernel};

/// What becomes of a bin's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoiPooling {
    /// Their mean.
    Average,
    /// The largest of the pixels around them, each times its weight, as ONNX has it.
    Max,
}

/// A pooling of regions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoiAlign {
    /// Images.
    pub images: usize,
    /// Their size, `[height, width]`.
    pub image: [usize; 2],
    /// Channels.
    pub channels: usize,
    /// The output's size, `[height, width]`.
    pub output: [usize; 2],
    /// Mean or largest.
    pub pooling: RoiPooling,
    /// Samples along each side of a bin; 0 takes as many as the bin has pixels.
    pub sampling_ratio: usize,
    /// From a region's coordinates to the image's.
    pub spatial_scale: f32,
    /// Whether pixels' centres lie at halves.
    pub half_pixel: bool,
}

/// The most samples along a side of a bin, where the region says how many.
const MAX_SAMPLES: f32 = 1024.0;

/// A bin: where its samples begin, their distance and number, `[y, x]`.
#[derive(Debug, Clone, Copy)]
struct Bin {
    start: [f32; 2],
    step: [f32; 2],
    samples: [usize; 2],
}

impl RoiAlign {
    /// Computes the output pixels `rows`, counted through all regions, of `out`, seen as `[regions, height, width, channels]`.
    /// `regions` holds x1, y1, x2, y2 of each, `image_of` its image. All tensors are whole.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(
        &self,
        isa: Isa,
        rows: Range<usize>,
        input: Floats<'_>,
        regions: Floats<'_>,
        image_of: Indices<'_>,
        out: FloatsMut<'_>,
    ) -> Result<(), IndexError> {
        let mut out = out;
        for row in rows {
            let region = row / (self.output[0] * self.output[1]);
            let image = image_of.resolve(region, self.images)?;
            let bin = self.bin(row, std::array::from_fn(|k| regions.get(region * 4 + k)));
            let out = out.reborrow();
            same_float_type!(input, out, |input, out| isa.run(Pool { roi: self, row, image, bin, input, out }));
        }
        Ok(())
    }

    fn bin(&self, row: usize, region: [f32; 4]) -> Bin {
        let offset = if self.half_pixel { 0.5 } else { 0.0 };
        let [x1, y1, x2, y2] = region.map(|x| x * self.spatial_scale - offset);
        let at = [row / self.output[1] % self.output[0], row % self.output[1]];
        let mut bin = Bin { start: [y1, x1], step: [y2 - y1, x2 - x1], samples: [self.sampling_ratio; 2] };
        for (axis, at) in at.into_iter().enumerate() {
            let extent = if self.half_pixel { bin.step[axis] } else { bin.step[axis].max(1.0) };
            let size = extent / self.output[axis] as f32;
            if self.sampling_ratio == 0 {
                bin.samples[axis] = size.ceil().min(MAX_SAMPLES) as usize;
            }
            bin.step[axis] = size / bin.samples[axis] as f32;
            bin.start[axis] += at as f32 * size;
        }
        bin
    }

    /// The two positions around sample `sample` along `axis` with their weights; `None` outside.
    #[inline(always)]
    fn around(&self, axis: usize, bin: &Bin, sample: usize) -> Option<[(usize, f32); 2]> {
        let at = bin.start[axis] + (sample as f32 + 0.5) * bin.step[axis];
        let size = self.image[axis];
        if !(at >= -1.0 && at <= size as f32) {
            return None;
        }
        let at = at.max(0.0);
        let low = at as usize;
        if low + 1 >= size {
            return Some([(size - 1, 1.0), (size - 1, 0.0)]);
        }
        let behind = at - low as f32;
        Some([(low, 1.0 - behind), (low + 1, behind)])
    }
}

struct Pool<'a, E> {
    roi: &'a RoiAlign,
    row: usize,
    image: usize,
    bin: Bin,
    input: &'a [E],
    out: &'a mut [E],
}

impl<E: Element> Kernel for Pool<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, isa: I) {
        let channels = self.roi.channels;
        for first in (0..channels).step_by(CHUNK) {
            let length = CHUNK.min(channels - first);
            let mut block = [0.0; CHUNK];
            let block = &mut block[..length];
            self.gather(isa, first, block);
            let to = self.row * channels + first;
            E::narrow(isa, block, &mut self.out[to..to + length]);
        }
    }
}

impl<E: Element> Pool<'_, E> {
    #[inline(always)]
    fn gather<I: Instructions>(&self, isa: I, first: usize, block: &mut [f32]) {
        let [samples_y, samples_x] = self.bin.samples;
        let average = self.roi.pooling == RoiPooling::Average;
        let mut any = false;
        for sample in 0..samples_y * samples_x {
            let y = self.roi.around(0, &self.bin, sample / samples_x);
            let x = self.roi.around(1, &self.bin, sample % samples_x);
            let (Some(y), Some(x)) = (y, x) else {
                // a sample outside is 0
                if !average {
                    block.iter_mut().for_each(|value| *value = if any { value.max(0.0) } else { 0.0 });
                    any = true;
                }
                continue;
            };
            for (y, weight_y) in y {
                for (x, weight_x) in x {
                    self.pixel(isa, [y, x], first, weight_y * weight_x, any, block);
                    any = true;
                }
            }
        }
        if average {
            let count = (samples_y * samples_x).max(1) as f32;
            block.iter_mut().for_each(|value| *value /= count);
        }
    }

    #[inline(always)]
    fn pixel<I: Instructions>(&self, isa: I, at: [usize; 2], first: usize, weight: f32, any: bool, block: &mut [f32]) {
        let [height, width] = self.roi.image;
        let from = ((self.image * height + at[0]) * width + at[1]) * self.roi.channels + first;
        let values = &self.input[from..from + block.len()];
        let mut buffer = [0.0; CHUNK];
        let wide = E::read(isa, values, &mut buffer);
        for (value, x) in block.iter_mut().zip(wide) {
            let x = weight * x;
            *value = match self.roi.pooling {
                RoiPooling::Average => *value + x,
                RoiPooling::Max if any => value.max(x),
                RoiPooling::Max => x,
            };
        }
    }
}
