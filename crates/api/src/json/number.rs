//! JSON numbers: the grammar, and values that are correctly rounded. Most are made from at most 19 digits and a power of ten
//! that f64 holds exactly (Clinger, "How to read floating point numbers accurately", 1990); the others go to the standard
//! library. Used by the reader and the tensor filler.

use std::str::FromStr;

use insula_core::{Error, Result};

use super::syntax;

/// The longest number, in bytes. The exact decimal form of any f64 is far shorter.
pub(crate) const LONGEST_NUMBER: usize = 4096;

/// A number in the text.
#[derive(Debug, Default)]
pub(crate) struct Number {
    /// Where it starts.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
    /// All digits as one integer, if there are at most 19.
    mantissa: u64,
    /// The power of ten that the mantissa stands for.
    exponent: i32,
    negative: bool,
    /// No fraction and no exponent.
    integer: bool,
    /// Whether the mantissa holds all digits.
    exact: bool,
}

/// Powers of ten that f64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Integers up to this one are exact in f64.
const LARGEST_EXACT: u64 = 1 << 53;

/// The most digits that any u64 can hold.
const MOST_DIGITS: usize = 19;

impl Number {
    /// Reads the number that starts at `start`.
    #[inline(always)]
    pub(crate) fn scan(text: &[u8], start: usize) -> Result<Number> {
        let window = &text[..text.len().min(start.saturating_add(LONGEST_NUMBER))];
        let negative = window.get(start) == Some(&b'-');
        let first = start + usize::from(negative);
        let (mut mantissa, mut end) = digits(window, first, 0);
        if end == first {
            return Err(syntax(text, first, if negative { "a digit" } else { "a value" }));
        }
        if end - first > 1 && window[first] == b'0' {
            return Err(syntax(text, first + 1, "the end of the number (no digits after a leading zero)"));
        }
        let mut count = end - first;
        let mut integer = true;
        let mut exponent = 0;
        if window.get(end) == Some(&b'.') {
            let fraction = end + 1;
            (mantissa, end) = digits(window, fraction, mantissa);
            if end == fraction {
                return Err(syntax(text, end, "a digit after the decimal point"));
            }
            count += end - fraction;
            exponent = -i32::try_from(end - fraction).unwrap_or(i32::MAX);
            integer = false;
        }
        let exact = count <= MOST_DIGITS || count - leading_zeros(&window[first..end]) <= MOST_DIGITS;
        if matches!(window.get(end), Some(b'e' | b'E')) {
            let (power, after) = scan_exponent(text, window, end + 1)?;
            exponent = exponent.saturating_add(power);
            end = after;
            integer = false;
        }
        if end == window.len() && window.len() < text.len() {
            return Err(Error::invalid(format!(
                "the number at byte {start} is longer than {LONGEST_NUMBER} characters"
            )));
        }
        Ok(Number { start, end, mantissa, exponent, negative, integer, exact })
    }

    /// Its text.
    pub(crate) fn text<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// The value, if it is written as an integer from 0 to `most`.
    pub(crate) fn unsigned(&self, text: &[u8], most: u64) -> Option<u64> {
        let value = self.magnitude(text)?;
        (value <= most && (!self.negative || value == 0)).then_some(value)
    }

    /// The value, if it is written as an integer from `least` to `most`.
    pub(crate) fn signed(&self, text: &[u8], least: i64, most: i64) -> Option<i64> {
        let magnitude = i128::from(self.magnitude(text)?);
        let value = i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()?;
        (least..=most).contains(&value).then_some(value)
    }

    /// The nearest f64, ties to even; infinite when it is too large.
    pub(crate) fn to_f64(&self, text: &[u8]) -> f64 {
        match self.quick() {
            Some(value) if self.mantissa <= LARGEST_EXACT => value,
            _ => self.parse(text).unwrap_or(f64::NAN),
        }
    }

    /// The nearest f32, ties to even; infinite when it is too large.
    #[inline]
    pub(crate) fn to_f32(&self, text: &[u8]) -> f32 {
        match self.quick() {
            Some(value) if !is_near_midpoint(value) => value as f32,
            _ => self.parse(text).unwrap_or(f32::NAN),
        }
    }

    /// The value with at most two roundings, of the mantissa and of the result: within two units of f64's last place, and
    /// correctly rounded if f64 holds the mantissa.
    #[inline]
    fn quick(&self) -> Option<f64> {
        let power = *POWERS.get(self.exponent.unsigned_abs() as usize).filter(|_| self.exact)?;
        let mantissa = self.mantissa as f64;
        let magnitude = if self.exponent < 0 { mantissa / power } else { mantissa * power };
        Some(if self.negative { -magnitude } else { magnitude })
    }

    fn magnitude(&self, text: &[u8]) -> Option<u64> {
        match (self.integer, self.exact) {
            (true, true) => Some(self.mantissa),
            (true, false) => std::str::from_utf8(self.text(text)).ok()?.trim_start_matches('-').parse().ok(),
            (false, _) => None,
        }
    }

    fn parse<T: FromStr>(&self, text: &[u8]) -> Option<T> {
        std::str::from_utf8(self.text(text)).ok()?.parse().ok()
    }
}

/// Whether `value`, taken to be off by up to two units of its last place, may lie on the other side of a midpoint between two
/// f32 or on it. It must not be a subnormal f32; those are far below what [`Number::quick`] gives.
fn is_near_midpoint(value: f64) -> bool {
    const MIDPOINT: u64 = 0x1000_0000;
    const MARGIN: u64 = 4;
    (value.to_bits() & 0x1fff_ffff).wrapping_sub(MIDPOINT - MARGIN) <= 2 * MARGIN
}

/// Appends the digits that start at `at` to `mantissa`; returns it and where they end. It wraps after [`MOST_DIGITS`].
#[inline]
fn digits(text: &[u8], mut at: usize, mut mantissa: u64) -> (u64, usize) {
    while let Some(byte) = text.get(at)
        && byte.is_ascii_digit()
    {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        at += 1;
    }
    (mantissa, at)
}

/// How many digits stand before the first that is not zero. `text` has only digits and a point.
fn leading_zeros(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte != b'.').take_while(|byte| **byte == b'0').count()
}

fn scan_exponent(text: &[u8], window: &[u8], at: usize) -> Result<(i32, usize)> {
    let negative = window.get(at) == Some(&b'-');
    let first = at + usize::from(matches!(window.get(at), Some(b'+' | b'-')));
    let mut power = 0i32;
    let mut end = first;
    while let Some(byte) = window.get(end)
        && byte.is_ascii_digit()
    {
        power = power.saturating_mul(10).saturating_add(i32::from(byte - b'0'));
        end += 1;
    }
    if end == first {
        return Err(syntax(text, end, "a digit of the exponent"));
    }
    Ok((if negative { -power } else { power }, end))
}
