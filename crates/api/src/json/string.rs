//! The inside of JSON strings: finding their end in bounded pieces, checking escapes and UTF-8 on the way. It never copies;
//! who wants the characters takes the pieces. The reader, the tensor filler and the encoder's escaping stand on it.

use std::borrow::Cow;

use insula_core::Result;

use super::syntax;

/// The longest text, in bytes between the quotes, of a string to which the protocol gives a meaning.
pub(crate) const LONGEST_NAME: usize = 4096;

/// The next piece of a string.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The bytes up to this position stand for themselves: whole, valid UTF-8 characters.
    Plain(usize),
    /// An escape for this character; the string goes on at the position.
    Escaped(char, usize),
    /// The closing quote; the next token starts at the position.
    End(usize),
}

/// The piece that begins at `at`, inside a string. A plain piece is cut at about `stop` so that long strings can be read in
/// steps, but makes progress even when `stop` is behind.
#[inline]
pub(crate) fn next_piece(text: &[u8], at: usize, stop: usize) -> Result<Piece> {
    match text.get(at) {
        None => Err(syntax(text, at, "the rest of a string")),
        Some(b'"') => Ok(Piece::End(at + 1)),
        Some(b'\\') => escape(text, at),
        Some(0..0x20) => Err(syntax(text, at, "an escape (control characters in strings must be escaped)")),
        Some(_) => plain(text, at, stop),
    }
}

fn plain(text: &[u8], at: usize, stop: usize) -> Result<Piece> {
    // four bytes more, so that at least one whole character fits
    let longest = stop.max(at.saturating_add(4)).min(text.len());
    let (length, is_ascii) = measure_plain(&text[at..longest]);
    let end = at + length;
    if is_ascii {
        return Ok(Piece::Plain(end));
    }
    match std::str::from_utf8(&text[at..end]) {
        Ok(_) => Ok(Piece::Plain(end)),
        Err(error)
            if error.error_len().is_none() && end == longest && longest < text.len() && error.valid_up_to() > 0 =>
        {
            Ok(Piece::Plain(at + error.valid_up_to()))
        }
        Err(error) => Err(syntax(text, at + error.valid_up_to(), "UTF-8")),
    }
}

fn escape(text: &[u8], at: usize) -> Result<Piece> {
    let character = match text.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(text, at),
        _ => return Err(syntax(text, at + 1, "one of `\"\\/bfnrtu` after a backslash")),
    };
    Ok(Piece::Escaped(character, at + 2))
}

fn unicode_escape(text: &[u8], at: usize) -> Result<Piece> {
    let unit = hexadecimal(text, at + 2)?;
    if let Some(character) = char::from_u32(unit) {
        return Ok(Piece::Escaped(character, at + 6));
    }
    let pair = |low: u32| char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
    if unit < 0xdc00 && text.get(at + 6..at + 8) == Some(b"\\u") {
        let low = hexadecimal(text, at + 8)?;
        if (0xdc00..0xe000).contains(&low)
            && let Some(character) = pair(low)
        {
            return Ok(Piece::Escaped(character, at + 12));
        }
    }
    Err(syntax(text, at, "a character (half of a surrogate pair is none)"))
}

fn hexadecimal(text: &[u8], at: usize) -> Result<u32> {
    let mut unit = 0;
    for index in at..at + 4 {
        let digit = text.get(index).and_then(|byte| char::from(*byte).to_digit(16));
        unit = unit * 16 + digit.ok_or_else(|| syntax(text, index, "four hexadecimal digits after `\\u`"))?;
    }
    Ok(unit)
}

/// How many of the first bytes of `bytes` are neither `"`, `\` nor a control character.
pub(crate) fn plain_run(bytes: &[u8]) -> usize {
    measure_plain(bytes).0
}

/// The same, eight bytes at a time, and whether these bytes are all ASCII.
#[inline]
fn measure_plain(bytes: &[u8]) -> (usize, bool) {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut all = 0;
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let special = special_bytes(word);
        if special != 0 {
            let before = special.trailing_zeros() & !7;
            all |= word & ((1 << before) - 1);
            return (index * 8 + (before / 8) as usize, all & TOPS == 0);
        }
        all |= word;
    }
    let mut length = words.len() * 8;
    for byte in rest {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        all |= u64::from(*byte);
        length += 1;
    }
    (length, all & TOPS == 0)
}

const TOPS: u64 = 0x8080_8080_8080_8080;

/// A mask whose lowest set bit is the top bit of the first special byte; bits above that one may be wrong, because borrows
/// travel upwards.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let equal = |byte: u8| {
        let different = word ^ (ONES * u64::from(byte));
        different.wrapping_sub(ONES) & !different
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (equal(b'"') | equal(b'\\') | control) & TOPS
}

/// A string that has been read to its end and found good.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Text {
    /// Position after the opening quote.
    pub(crate) start: usize,
    /// Position of the closing quote.
    pub(crate) end: usize,
    /// Whether there are escapes in it.
    pub(crate) escaped: bool,
}

impl Text {
    /// The characters; `None` when the text is longer than [`LONGEST_NAME`], which no name of the protocol is.
    pub(crate) fn name<'a>(&self, text: &'a [u8]) -> Option<Cow<'a, str>> {
        let raw = text.get(self.start..self.end)?;
        if raw.len() > LONGEST_NAME {
            return None;
        }
        if !self.escaped {
            return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
        }
        let mut characters = String::with_capacity(raw.len());
        let mut at = self.start;
        loop {
            match next_piece(text, at, self.end).ok()? {
                Piece::Plain(end) => {
                    characters.push_str(std::str::from_utf8(&text[at..end]).ok()?);
                    at = end;
                }
                Piece::Escaped(character, next) => {
                    characters.push(character);
                    at = next;
                }
                Piece::End(_) => return Some(Cow::Owned(characters)),
            }
        }
    }

    /// The text between the quotes as it stands.
    pub(crate) fn raw<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }
}
