//! Reading JSON text (RFC 8259, strictly) where it lies, in bounded steps and without recursion: the body is untrusted and
//! may be as large as a tenant's limit. It builds no values; the decoders pull tokens from it.

pub(crate) mod number;
pub(crate) mod reader;
pub(crate) mod string;

#[cfg(test)]
mod tests;

use insula_core::Error;

/// The most characters of a caller's text that a message repeats.
const EXCERPT_CHARACTERS: usize = 60;

/// The error for text that is not JSON: where, what stands there and what was expected.
#[cold]
pub(crate) fn syntax(text: &[u8], at: usize, expected: &str) -> Error {
    let rest = text.get(at..).unwrap_or_default();
    let Some(&byte) = rest.first() else {
        return Error::invalid(format!("the JSON text ends at byte {at} where {expected} was expected"));
    };
    let unsigned = rest.strip_prefix(b"-").unwrap_or(rest);
    let hint = if unsigned.starts_with(b"NaN") || unsigned.starts_with(b"Inf") {
        "; NaN and Infinity are not JSON: send the tensor as binary data"
    } else {
        ""
    };
    let found = if byte.is_ascii_graphic() { format!("`{}`", char::from(byte)) } else { format!("byte 0x{byte:02x}") };
    Error::invalid(format!(
        "the body is not valid JSON at byte {at}: found {found} where {expected} was expected{hint}"
    ))
}

/// A short, printable form of a caller's text for a message.
#[cold]
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(4 * EXCERPT_CHARACTERS)];
    let text = String::from_utf8_lossy(start);
    let shown: String =
        text.chars().take(EXCERPT_CHARACTERS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.len() < bytes.len() { format!("{shown}\u{2026}") } else { shown }
}

/// Whether `byte` may stand between tokens.
pub(crate) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
