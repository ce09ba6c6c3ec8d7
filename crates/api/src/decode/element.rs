//! One element of a tensor from its JSON text: what each type takes and how it lies in memory. It knows neither arrays nor
//! tensors; the tensor filler calls it for every element.

use insula_core::DType;

use super::float16;
use crate::json::number::Number;

/// Writes `number` as an element of `dtype` to `out`, little-endian. `None` when the type cannot take it; `out` must have the
/// size of one element.
pub(super) fn store(dtype: DType, number: &Number, text: &[u8], out: &mut [u8]) -> Option<()> {
    fn put<const N: usize>(out: &mut [u8], bytes: [u8; N]) -> Option<()> {
        *out.first_chunk_mut::<N>()? = bytes;
        Some(())
    }
    fn finite(value: f64) -> Option<f64> {
        value.is_finite().then_some(value)
    }
    match dtype {
        DType::Fp32 => {
            let value = number.to_f32(text);
            put(out, value.is_finite().then_some(value)?.to_le_bytes())
        }
        DType::Fp64 => put(out, finite(number.to_f64(text))?.to_le_bytes()),
        DType::Fp16 => put(out, float16::round(number.to_f64(text), float16::FP16)?.to_le_bytes()),
        DType::Bf16 => put(out, float16::round(number.to_f64(text), float16::BF16)?.to_le_bytes()),
        DType::Uint8 => put(out, u8::try_from(number.unsigned(text, u8::MAX.into())?).ok()?.to_le_bytes()),
        DType::Uint16 => put(out, u16::try_from(number.unsigned(text, u16::MAX.into())?).ok()?.to_le_bytes()),
        DType::Uint32 => put(out, u32::try_from(number.unsigned(text, u32::MAX.into())?).ok()?.to_le_bytes()),
        DType::Uint64 => put(out, number.unsigned(text, u64::MAX)?.to_le_bytes()),
        DType::Int8 => put(out, i8::try_from(number.signed(text, i8::MIN.into(), i8::MAX.into())?).ok()?.to_le_bytes()),
        DType::Int16 => {
            put(out, i16::try_from(number.signed(text, i16::MIN.into(), i16::MAX.into())?).ok()?.to_le_bytes())
        }
        DType::Int32 => {
            put(out, i32::try_from(number.signed(text, i32::MIN.into(), i32::MAX.into())?).ok()?.to_le_bytes())
        }
        DType::Int64 => put(out, number.signed(text, i64::MIN, i64::MAX)?.to_le_bytes()),
        DType::Bool | DType::Bytes => None,
    }
}

/// What an element of `dtype` may be, for messages.
pub(super) fn takes(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "true or false",
        DType::Uint8 => "a whole number from 0 to 255",
        DType::Uint16 => "a whole number from 0 to 65535",
        DType::Uint32 => "a whole number from 0 to 4294967295",
        DType::Uint64 => "a whole number from 0 to 18446744073709551615",
        DType::Int8 => "a whole number from -128 to 127",
        DType::Int16 => "a whole number from -32768 to 32767",
        DType::Int32 => "a whole number from -2147483648 to 2147483647",
        DType::Int64 => "a whole number from -9223372036854775808 to 9223372036854775807",
        DType::Fp16 => "a number whose magnitude rounds to at most 65504",
        DType::Bf16 => "a number whose magnitude rounds to at most 3.3895e38",
        DType::Fp32 => "a number whose magnitude rounds to at most 3.4028e38",
        DType::Fp64 => "a number whose magnitude rounds to at most 1.7976e308",
        DType::Bytes => "a string",
    }
}
