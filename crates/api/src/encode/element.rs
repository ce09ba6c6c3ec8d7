//! The JSON text of one element, into a few bytes on the stack. The element writer calls it.

use half::{bf16, f16};
use insula_core::DType;

/// The longest text of any element but a string.
pub(super) const LONGEST: usize = 32;

/// The text of an element or of an escape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    bytes: [u8; LONGEST],
    start: u8,
    end: u8,
}

impl Short {
    /// No text.
    pub(super) const EMPTY: Short = Short { bytes: [0; LONGEST], start: 0, end: 0 };

    /// `text`, which must not be longer than [`LONGEST`]; what is longer is cut.
    pub(super) fn new(text: &[u8]) -> Short {
        let mut short = Short::EMPTY;
        let length = text.len().min(LONGEST);
        short.bytes[..length].copy_from_slice(&text[..length]);
        short.end = length as u8;
        short
    }

    /// The text that has not been taken.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..usize::from(self.end)]
    }

    /// Moves as much as fits to `out` and returns how much.
    pub(super) fn drain(&mut self, out: &mut [u8]) -> usize {
        let count = self.as_slice().len().min(out.len());
        out[..count].copy_from_slice(&self.as_slice()[..count]);
        self.start += count as u8;
        count
    }
}

/// The longest text of an element of `dtype`, 0 for BYTES.
pub(super) const fn longest(dtype: DType) -> usize {
    match dtype {
        DType::Bool => 5,
        DType::Uint8 => 3,
        DType::Int8 => 4,
        DType::Uint16 => 5,
        DType::Int16 => 6,
        DType::Uint32 => 10,
        DType::Int32 => 11,
        DType::Uint64 | DType::Int64 => 20,
        DType::Fp16 | DType::Bf16 | DType::Fp32 => 16,
        DType::Fp64 => 24,
        DType::Bytes => 0,
    }
}

/// Calls `take` with the shortest text that reads back as the same element. Floats must be finite; 16-bit ones are written
/// as the f32 of the same value, which reads back exactly. `None` if `bytes` is not one element of `dtype` or that is BYTES.
pub(super) fn with_text<T>(dtype: DType, bytes: &[u8], take: impl FnOnce(&str) -> T) -> Option<T> {
    fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }
    let mut integer = itoa::Buffer::new();
    let mut float = zmij::Buffer::new();
    let text = match dtype {
        DType::Fp32 => float.format_finite(f32::from_le_bytes(array(bytes)?)),
        DType::Fp64 => float.format_finite(f64::from_le_bytes(array(bytes)?)),
        DType::Fp16 => float.format_finite(f16::from_le_bytes(array(bytes)?).to_f32()),
        DType::Bf16 => float.format_finite(bf16::from_le_bytes(array(bytes)?).to_f32()),
        DType::Int64 => integer.format(i64::from_le_bytes(array(bytes)?)),
        DType::Int32 => integer.format(i32::from_le_bytes(array(bytes)?)),
        DType::Int16 => integer.format(i16::from_le_bytes(array(bytes)?)),
        DType::Int8 => integer.format(i8::from_le_bytes(array(bytes)?)),
        DType::Uint64 => integer.format(u64::from_le_bytes(array(bytes)?)),
        DType::Uint32 => integer.format(u32::from_le_bytes(array(bytes)?)),
        DType::Uint16 => integer.format(u16::from_le_bytes(array(bytes)?)),
        DType::Uint8 => integer.format(u8::from_le_bytes(array(bytes)?)),
        DType::Bool if array(bytes)? == [0u8] => "false",
        DType::Bool => "true",
        DType::Bytes => return None,
    };
    Some(take(text))
}

/// The escape for a byte that may not stand for itself in a string.
pub(super) fn escape(byte: u8) -> Short {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x8 => b'b',
        0xc => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let (high, low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
            return Short::new(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    Short::new(&[b'\\', letter])
}
