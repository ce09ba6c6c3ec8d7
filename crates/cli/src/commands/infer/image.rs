//! Decodes a PNG into samples: grey or colour, 8 or 16 bits, palettes spread out. It resizes nothing and knows no model.
//! A hostile file ends as a message, within bounded memory.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Reader, Transformations};

use crate::failure::Failure;

/// The most bytes that a decoded image may take.
const DECODED_BYTES_MAX: usize = 256 << 20;

/// A decoded image without transparency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    channels: usize,
    sample_max: u16,
    samples: Vec<u16>,
}

impl Image {
    /// Decodes the whole of `png`.
    pub fn decode(png: &[u8]) -> Result<Image, Failure> {
        let broken = |error: DecodingError| Failure::misused(format_args!("the PNG cannot be decoded: {error}"));
        let mut decoder = Decoder::new_with_limits(Cursor::new(png), Limits { bytes: DECODED_BYTES_MAX });
        decoder.set_transformations(Transformations::EXPAND);
        let mut reader = decoder.read_info().map_err(broken)?;
        let mut bytes = vec![0; decoded_bytes(&reader)?];
        let frame = reader.next_frame(&mut bytes).map_err(broken)?;
        reader.finish().map_err(broken)?;
        bytes.truncate(frame.buffer_size());
        let (samples, sample_max) = samples(&bytes, frame.bit_depth);
        let (channels, with_alpha) = match frame.color_type {
            ColorType::Grayscale => (1, false),
            ColorType::GrayscaleAlpha => (1, true),
            ColorType::Rgba => (3, true),
            ColorType::Rgb | ColorType::Indexed => (3, false),
        };
        let samples = if with_alpha { without_alpha(&samples, channels, sample_max)? } else { samples };
        let (width, height) = (frame.width as usize, frame.height as usize);
        Ok(Image { width, height, channels, sample_max, samples })
    }

    /// Pixels a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The largest value that a sample can have.
    pub fn sample_max(&self) -> u16 {
        self.sample_max
    }

    /// The samples with `channels` (1 or 3) to a pixel, rows from top to bottom, the channels of a pixel side by side. Grey
    /// becomes colour; colour becomes grey only where no pixel loses any.
    pub fn samples(&self, channels: usize) -> Result<Vec<u16>, Failure> {
        match (self.channels, channels) {
            (1, 3) => Ok(self.samples.iter().flat_map(|sample| [*sample; 3]).collect()),
            (3, 1) => {
                let grey = |pixel: &[u16]| (pixel[0] == pixel[1] && pixel[1] == pixel[2]).then_some(pixel[0]);
                self.samples.chunks_exact(3).map(grey).collect::<Option<Vec<_>>>().ok_or_else(|| {
                    Failure::misused("the image is in colour and the model takes one channel")
                        .hint("convert the image to grey first: how colours become grey is for you to say")
                })
            }
            (has, wants) if has == wants => Ok(self.samples.clone()),
            (has, wants) => {
                Err(Failure::misused(format_args!("the image has {has} channels and the model takes {wants}")))
            }
        }
    }
}

fn decoded_bytes(reader: &Reader<Cursor<&[u8]>>) -> Result<usize, Failure> {
    reader.output_buffer_size().filter(|bytes| *bytes <= DECODED_BYTES_MAX).ok_or_else(|| {
        let (width, height) = reader.info().size();
        Failure::misused(format_args!(
            "the PNG is {width}x{height}: it would take more than {} MiB of memory",
            DECODED_BYTES_MAX >> 20
        ))
    })
}

/// The samples that `bytes` hold, and the largest that there could be.
fn samples(bytes: &[u8], depth: BitDepth) -> (Vec<u16>, u16) {
    match depth {
        BitDepth::Sixteen => {
            (bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect(), u16::MAX)
        }
        _ => (bytes.iter().copied().map(u16::from).collect(), u16::from(u8::MAX)),
    }
}

/// `samples` with `channels` and an opacity to each pixel, without the opacity.
fn without_alpha(samples: &[u16], channels: usize, sample_max: u16) -> Result<Vec<u16>, Failure> {
    let pixels = samples.chunks_exact(channels + 1);
    if pixels.clone().any(|pixel| pixel[channels] != sample_max) {
        return Err(Failure::misused("the PNG has transparent pixels, which no model takes")
            .hint("put the image on a background of one colour first"));
    }
    Ok(pixels.flat_map(|pixel| &pixel[..channels]).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(color: ColorType, depth: BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 200, 200, 200]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        file
    }

    #[test]
    fn grey_and_colour_are_decoded_at_both_depths() {
        let grey = Image::decode(&png(ColorType::Grayscale, BitDepth::Eight, 2, &[0, 255])).unwrap();
        assert_eq!((grey.width(), grey.height(), grey.sample_max()), (2, 1, 255));
        assert_eq!(grey.samples(1).unwrap(), [0, 255]);
        let deep = Image::decode(&png(ColorType::Grayscale, BitDepth::Sixteen, 1, &[1, 2])).unwrap();
        assert_eq!((deep.sample_max(), deep.samples(1).unwrap()), (65_535, vec![258]));
        let colour = Image::decode(&png(ColorType::Rgb, BitDepth::Eight, 1, &[1, 2, 3])).unwrap();
        assert_eq!(colour.samples(3).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn palettes_and_single_bits_are_spread_out() {
        let indexed = Image::decode(&png(ColorType::Indexed, BitDepth::Eight, 2, &[0, 1])).unwrap();
        assert_eq!(indexed.samples(3).unwrap(), [1, 2, 3, 200, 200, 200]);
        let bits = Image::decode(&png(ColorType::Grayscale, BitDepth::One, 2, &[0b0100_0000])).unwrap();
        assert_eq!(bits.samples(1).unwrap(), [0, 255]);
    }

    #[test]
    fn grey_becomes_colour_and_colour_becomes_grey_only_without_loss() {
        let grey = Image::decode(&png(ColorType::Grayscale, BitDepth::Eight, 2, &[7, 8])).unwrap();
        assert_eq!(grey.samples(3).unwrap(), [7, 7, 7, 8, 8, 8]);
        let colourless = Image::decode(&png(ColorType::Rgb, BitDepth::Eight, 1, &[5, 5, 5])).unwrap();
        assert_eq!(colourless.samples(1).unwrap(), [5]);
        let colour = Image::decode(&png(ColorType::Rgb, BitDepth::Eight, 1, &[5, 5, 6])).unwrap();
        assert!(colour.samples(1).unwrap_err().messages()[0].contains("one channel"));
    }

    #[test]
    fn opacity_is_dropped_only_where_everything_is_opaque() {
        let opaque = Image::decode(&png(ColorType::GrayscaleAlpha, BitDepth::Eight, 2, &[1, 255, 2, 255])).unwrap();
        assert_eq!(opaque.samples(1).unwrap(), [1, 2]);
        let failure = Image::decode(&png(ColorType::Rgba, BitDepth::Eight, 1, &[1, 2, 3, 254])).unwrap_err();
        assert!(failure.messages()[0].contains("transparent"), "{failure:?}");
    }

    #[test]
    fn a_file_cut_or_changed_anywhere_is_refused_and_never_panics() {
        let whole = png(ColorType::Rgb, BitDepth::Eight, 3, &[9; 9]);
        assert!(Image::decode(&whole).is_ok());
        for length in 0..whole.len() - 12 {
            assert!(Image::decode(&whole[..length]).is_err(), "cut to {length}");
        }
        for index in 0..whole.len() {
            let mut changed = whole.clone();
            changed[index] ^= 0x55;
            let _ = Image::decode(&changed);
        }
    }

    #[test]
    fn a_small_file_that_says_it_is_huge_is_refused_before_memory_is_taken() {
        let mut file = Vec::new();
        let mut writer = png::Encoder::new(&mut file, 60_000, 60_000).write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, b"\x78\x9c").unwrap();
        drop(writer);
        let failure = Image::decode(&file).unwrap_err();
        assert!(failure.messages()[0].starts_with("the PNG is 60000x60000"), "{failure:?}");
    }
}
