//! The look over an output before it is promised as JSON: whether JSON can hold it, and how long its text can be. It must be
//! fast, for it runs before the first byte; it writes nothing.

use insula_core::validate::next_element;
use insula_core::{DType, OutputTensor, Result};

use super::element::{escape, longest};
use super::{not_json, torn};
use crate::json::string::plain_run;

/// The most bytes that the elements of `output` take as JSON, with their commas. Fails when JSON cannot hold them.
pub(super) fn longest_text(output: &OutputTensor<'_>) -> Result<usize> {
    if let Some(index) = first_non_finite(output.dtype, output.bytes) {
        return Err(not_json(output, index, "NaN or Infinity"));
    }
    match output.dtype.size() {
        Some(size) => Ok((output.bytes.len() / size).saturating_mul(longest(output.dtype) + 1)),
        None => strings_text(output),
    }
}

fn strings_text(output: &OutputTensor<'_>) -> Result<usize> {
    let (mut rest, mut total, mut index) = (output.bytes, 0, 0);
    while !rest.is_empty() {
        let (element, after) = next_element(rest).map_err(|found| torn(output, &found))?;
        if std::str::from_utf8(element).is_err() {
            return Err(not_json(output, index, "not valid UTF-8"));
        }
        total += escaped_length(element) + 3;
        (rest, index) = (after, index + 1);
    }
    Ok(total)
}

fn escaped_length(mut characters: &[u8]) -> usize {
    let mut length = characters.len();
    loop {
        let Some((&special, rest)) = characters[plain_run(characters)..].split_first() else { return length };
        length += escape(special).as_slice().len() - 1;
        characters = rest;
    }
}

/// The position of the first NaN or infinity, whose exponent bits are all set.
fn first_non_finite(dtype: DType, bytes: &[u8]) -> Option<usize> {
    fn first<const N: usize>(bytes: &[u8], non_finite: impl Fn(&[u8; N]) -> bool) -> Option<usize> {
        let elements = bytes.as_chunks::<N>().0;
        // without an early exit this loop is done in vectors; nearly always there is nothing to find
        if !elements.iter().fold(false, |found, element| found | non_finite(element)) {
            return None;
        }
        elements.iter().position(non_finite)
    }
    match dtype {
        DType::Fp32 => first(bytes, |element| u32::from_le_bytes(*element) & 0x7f80_0000 == 0x7f80_0000),
        DType::Fp64 => {
            first(bytes, |element| u64::from_le_bytes(*element) & 0x7ff0_0000_0000_0000 == 0x7ff0_0000_0000_0000)
        }
        DType::Fp16 => first(bytes, |element| u16::from_le_bytes(*element) & 0x7c00 == 0x7c00),
        DType::Bf16 => first(bytes, |element| u16::from_le_bytes(*element) & 0x7f80 == 0x7f80),
        _ => None,
    }
}
