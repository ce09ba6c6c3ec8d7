//! An image as the bytes of a tensor: samples scaled, laid out and written in the input's element type, little-endian. It
//! decodes no file and sends nothing.

use half::{bf16, f16};
use insula_api::wire::TensorMetadata;
use insula_core::DType;

use super::image::Image;
use super::image_layout::ImageLayout;
use super::scale::Scale;
use crate::failure::Failure;

/// A tensor that is ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageTensor {
    /// The input's name.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The whole shape.
    pub shape: Vec<usize>,
    /// What the darkest and the lightest pixel became.
    pub scale: Scale,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl ImageTensor {
    /// `image` as `input` wants it. Without a `scale` one is chosen by the
    /// input's type. Fails when size, channels or
    /// type do not fit, or when a scaled value does not fit the type.
    pub fn new(image: &Image, input: &TensorMetadata, scale: Option<Scale>) -> Result<ImageTensor, Failure> {
        let dtype = DType::from_name(&input.datatype).ok_or_else(|| {
            Failure::new(format_args!(
                "the model's input `{}` has the unknown datatype {:?}",
                input.name, input.datatype
            ))
        })?;
        let write = writer(dtype).ok_or_else(|| {
            Failure::misused(format_args!(
                "the model's input `{}` takes {dtype}, which an image cannot be turned into",
                input.name
            ))
            .hint("send a JSON request instead: it can hold any input")
        })?;
        let scale = scale.unwrap_or_else(|| default_scale(dtype));
        let layout = ImageLayout::find(&input.shape, image.height(), image.width())?;
        let samples = image.samples(layout.channels)?;
        let mut bytes = Vec::with_capacity(samples.len() * dtype.size().unwrap_or(1));
        let mut write_sample = |sample: u16| {
            let value = scale.value(sample, image.sample_max());
            write(value, &mut bytes).ok_or_else(|| {
                Failure::misused(format_args!("with `--scale {scale}` a pixel becomes {value}, which is no {dtype}"))
            })
        };
        if layout.channels_first {
            for channel in 0..layout.channels {
                samples.iter().skip(channel).step_by(layout.channels).try_for_each(|sample| write_sample(*sample))?;
            }
        } else {
            samples.iter().try_for_each(|sample| write_sample(*sample))?;
        }
        let shape = layout.request_shape(image.height(), image.width());
        Ok(ImageTensor { name: input.name.clone(), dtype, shape, scale, bytes })
    }
}

/// 0:1 for real numbers, 0:255 for whole ones.
fn default_scale(dtype: DType) -> Scale {
    match dtype {
        DType::Fp16 | DType::Bf16 | DType::Fp32 | DType::Fp64 => Scale::UNIT,
        _ => Scale::BYTE,
    }
}

/// Appends a value; `None` when it is out of the type's range.
type Writer = fn(f64, &mut Vec<u8>) -> Option<()>;

/// How values of `dtype` are written; `None` for types that no image is made of. Integers are rounded, half away from zero.
fn writer(dtype: DType) -> Option<Writer> {
    let writer: Writer = match dtype {
        DType::Fp16 => |value, out| real(f16::from_f64(value).to_le_bytes(), f16::from_f64(value).is_finite(), out),
        DType::Bf16 => |value, out| real(bf16::from_f64(value).to_le_bytes(), bf16::from_f64(value).is_finite(), out),
        DType::Fp32 => |value, out| real((value as f32).to_le_bytes(), (value as f32).is_finite(), out),
        DType::Fp64 => |value, out| real(value.to_le_bytes(), value.is_finite(), out),
        DType::Uint8 => |value, out| integer(value, out, |whole| u8::try_from(whole).ok().map(u8::to_le_bytes)),
        DType::Uint16 => |value, out| integer(value, out, |whole| u16::try_from(whole).ok().map(u16::to_le_bytes)),
        DType::Uint32 => |value, out| integer(value, out, |whole| u32::try_from(whole).ok().map(u32::to_le_bytes)),
        DType::Uint64 => |value, out| integer(value, out, |whole| u64::try_from(whole).ok().map(u64::to_le_bytes)),
        DType::Int8 => |value, out| integer(value, out, |whole| i8::try_from(whole).ok().map(i8::to_le_bytes)),
        DType::Int16 => |value, out| integer(value, out, |whole| i16::try_from(whole).ok().map(i16::to_le_bytes)),
        DType::Int32 => |value, out| integer(value, out, |whole| i32::try_from(whole).ok().map(i32::to_le_bytes)),
        DType::Int64 => |value, out| integer(value, out, |whole| i64::try_from(whole).ok().map(i64::to_le_bytes)),
        DType::Bool | DType::Bytes => return None,
    };
    Some(writer)
}

fn real<const SIZE: usize>(bytes: [u8; SIZE], is_finite: bool, out: &mut Vec<u8>) -> Option<()> {
    is_finite.then(|| out.extend_from_slice(&bytes))
}

fn integer<const SIZE: usize>(value: f64, out: &mut Vec<u8>, bytes: fn(i128) -> Option<[u8; SIZE]>) -> Option<()> {
    // Scales are at most 1e30, which i128 holds; a cast beyond saturates and then fits no type.
    out.extend_from_slice(&bytes(value.round() as i128)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(color: png::ColorType, width: u32, height: u32, data: &[u8]) -> Image {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(color);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        Image::decode(&file).unwrap()
    }

    fn input(datatype: &str, shape: &[i64]) -> TensorMetadata {
        TensorMetadata { name: "image".into(), datatype: datatype.into(), shape: shape.into() }
    }

    #[test]
    fn channels_lie_where_the_model_wants_them() {
        let colours = image(png::ColorType::Rgb, 2, 1, &[1, 2, 3, 4, 5, 6]);
        let first = ImageTensor::new(&colours, &input("UINT8", &[-1, 3, 1, 2]), None).unwrap();
        assert_eq!((&first.shape[..], &first.bytes[..]), (&[1, 3, 1, 2][..], &[1, 4, 2, 5, 3, 6][..]));
        let last = ImageTensor::new(&colours, &input("UINT8", &[-1, 1, 2, 3]), None).unwrap();
        assert_eq!((&last.shape[..], &last.bytes[..]), (&[1, 1, 2, 3][..], &[1, 2, 3, 4, 5, 6][..]));
    }

    #[test]
    fn real_inputs_go_from_zero_to_one_unless_told_otherwise() {
        let grey = image(png::ColorType::Grayscale, 2, 1, &[0, 255]);
        let unit = ImageTensor::new(&grey, &input("FP32", &[-1, 1, 1, 2]), None).unwrap();
        assert_eq!(unit.bytes, [0.0_f32.to_le_bytes(), 1.0_f32.to_le_bytes()].concat());
        let scaled = ImageTensor::new(&grey, &input("FP16", &[-1, 1, 1, 2]), "0:16".parse().ok()).unwrap();
        assert_eq!(scaled.bytes, [f16::ZERO.to_le_bytes(), f16::from_f64(16.0).to_le_bytes()].concat());
    }

    #[test]
    fn every_numeric_type_gets_as_many_bytes_as_it_has() {
        let grey = image(png::ColorType::Grayscale, 3, 1, &[0, 1, 1]);
        for dtype in DType::ALL {
            let tensor = ImageTensor::new(&grey, &input(dtype.name(), &[-1, 1, 1, 3]), None);
            match dtype {
                DType::Bool | DType::Bytes => assert!(tensor.unwrap_err().messages()[0].contains(dtype.name())),
                _ => assert_eq!(tensor.unwrap().bytes.len(), 3 * dtype.size().unwrap(), "{dtype}"),
            }
        }
    }

    #[test]
    fn a_value_that_the_type_cannot_hold_is_refused_with_the_scale() {
        let grey = image(png::ColorType::Grayscale, 1, 1, &[255]);
        for (datatype, scale) in
            [("UINT8", "0:256"), ("INT8", "0:128"), ("UINT32", "0:-1"), ("FP16", "0:70000"), ("INT64", "0:1e19")]
        {
            let failure = ImageTensor::new(&grey, &input(datatype, &[1, 1, 1, 1]), scale.parse().ok()).unwrap_err();
            assert!(failure.messages()[0].contains("--scale"), "{failure:?}");
        }
        let signed = ImageTensor::new(&grey, &input("INT8", &[1, 1, 1, 1]), "0:-128".parse().ok()).unwrap();
        assert_eq!(signed.bytes, [0x80]);
    }
}
