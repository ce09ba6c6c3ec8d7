//! One table of a document, read key by key: each getter checks type and range and notes what is wrong, with the key's
//! path and line, so that reading goes on and all faults come out together. It knows TOML, not tenants.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use insula_core::Error;
use jiff::Timestamp;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::checker::Checker;
use crate::byte_size;

/// A table and its path.
pub(super) struct Section<'d> {
    path: String,
    table: &'d DeTable<'d>,
    /// Where the table begins.
    at: usize,
}

impl<'d> Section<'d> {
    /// The whole document.
    pub(super) fn root(table: &'d DeTable<'d>) -> Section<'d> {
        Section { path: String::new(), table, at: 0 }
    }

    /// Notes every key that is neither in `known` nor, by name, in `unavailable`.
    pub(super) fn refuse_others(&self, checker: &mut Checker<'_>, known: &[&str], unavailable: &[&str]) {
        for name in self.table.keys() {
            let key: &str = name.get_ref();
            let path = self.path_of(&key.chars().take(80).collect::<String>());
            if unavailable.contains(&key) {
                let message = format!("`{path}` is not available in this version; remove it");
                checker.fault(name.span().start, &path, message);
            } else if !known.contains(&key) {
                let nearest = known.iter().min_by_key(|candidate| strsim::osa_distance(short(key), candidate));
                let nearest = nearest.copied().unwrap_or_default();
                let message = format!("{path}: unknown key; the nearest known one is `{nearest}`");
                checker.fault(name.span().start, &path, message);
            }
        }
    }

    /// Notes if `key` is missing, and says what it is for; whether it is there.
    pub(super) fn require(&self, checker: &mut Checker<'_>, key: &str, what: &str) -> bool {
        let there = self.value(key).is_some();
        if !there {
            let path = self.path_of(key);
            checker.fault(self.at, &path, format!("{path}: missing; add {what}"));
        }
        there
    }

    /// A string.
    pub(super) fn string(&self, checker: &mut Checker<'_>, key: &str) -> Option<&'d str> {
        let value = self.value(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(checker, key, value, "a string");
        }
        text
    }

    /// A string that is one of `words`.
    pub(super) fn word<T: Copy>(&self, checker: &mut Checker<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.string(checker, key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let choices: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.bad_value(checker, key, format_args!("must be {}", choices.join(" or ")));
        }
        found.map(|(_, value)| *value)
    }

    /// A string of which this version offers one word; `absent` is one that it names but does not offer.
    pub(super) fn offered_word<T: Copy>(
        &self,
        checker: &mut Checker<'_>,
        key: &str,
        offered: (&str, T),
        absent: &str,
    ) -> Option<T> {
        if self.value(key)?.get_ref().as_str() != Some(absent) {
            return self.word(checker, key, &[offered]);
        }
        let path = self.path_of(key);
        let message = format!("`{path} = \"{absent}\"` is not available in this version; use \"{}\"", offered.0);
        checker.fault(self.at_value(key), &path, message);
        None
    }

    /// A string that `T` checks itself.
    pub(super) fn parsed<T: FromStr<Err = Error>>(&self, checker: &mut Checker<'_>, key: &str) -> Option<T> {
        let text = self.string(checker, key)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let path = self.path_of(key);
                checker.fault(self.at_value(key), &path, format!("{path}: {}", error.message()));
                None
            }
        }
    }

    /// A whole number in `range`.
    pub(super) fn whole(&self, checker: &mut Checker<'_>, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type(checker, key, value, "a whole number");
            return None;
        };
        let number = unsigned(number).filter(|number| range.contains(number));
        if number.is_none() {
            let wanted = format!("must be a whole number from {} to {}", range.start(), range.end());
            self.bad_value(checker, key, wanted);
        }
        number
    }

    /// [`Section::whole`] from 1 to `most`, for counts.
    pub(super) fn count(&self, checker: &mut Checker<'_>, key: &str, most: u32) -> Option<u32> {
        self.whole(checker, key, 1..=u64::from(most)).and_then(|number| u32::try_from(number).ok())
    }

    /// A number, whole or not, in `range`.
    pub(super) fn number(&self, checker: &mut Checker<'_>, key: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.value(key)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => whole_as_float(integer),
            _ => {
                self.wrong_type(checker, key, value, "a number");
                return None;
            }
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.bad_value(checker, key, format_args!("must be {} to {}", range.start(), range.end()));
        }
        number
    }

    /// A size in bytes, as a string with a unit or as a plain number, in `range`.
    pub(super) fn size(&self, checker: &mut Checker<'_>, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let bytes = match value.get_ref() {
            DeValue::String(text) => byte_size::parse(text),
            DeValue::Integer(integer) => unsigned(integer),
            _ => None,
        };
        let fitting = bytes.filter(|bytes| range.contains(bytes));
        if bytes.is_none() {
            self.bad_value(checker, key, format_args!("must be {}", byte_size::FORM));
        } else if fitting.is_none() {
            let (least, most) = (byte_size::format(*range.start()), byte_size::format(*range.end()));
            self.bad_value(checker, key, format_args!("must be {least} to {most}"));
        }
        fitting
    }

    /// A date and time with an offset.
    pub(super) fn timestamp(&self, checker: &mut Checker<'_>, key: &str) -> Option<Timestamp> {
        let value = self.value(key)?;
        let time = value.get_ref().as_datetime().and_then(|time| time.to_string().parse::<Timestamp>().ok());
        if time.is_none() {
            let wanted = "must be a date and time with an offset, without quotes, such as 2026-12-01T00:00:00Z";
            self.bad_value(checker, key, wanted);
        }
        time
    }

    /// A table of its own.
    pub(super) fn table(&self, checker: &mut Checker<'_>, key: &str) -> Option<Section<'d>> {
        let value = self.value(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(checker, key, value, "a table");
            return None;
        };
        Some(Section { path: self.path_of(key), table, at: value.span().start })
    }

    /// An array of tables (`[[key]]`); empty if it is missing.
    pub(super) fn tables(&self, checker: &mut Checker<'_>, key: &str) -> Vec<Section<'d>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let items: Option<Vec<_>> = value.get_ref().as_array().and_then(|items| {
            let tables = items.iter().enumerate().map(|(index, item)| {
                let path = format!("{}[{index}]", self.path_of(key));
                item.get_ref().as_table().map(|table| Section { path, table, at: item.span().start })
            });
            tables.collect()
        });
        if items.is_none() {
            let path = self.path_of(key);
            checker.fault(value.span().start, &path, format!("{path}: must be tables, each headed `[[{path}]]`"));
        }
        items.unwrap_or_default()
    }

    /// Notes that `key`'s value is wrong, and shows it.
    pub(super) fn bad_value(&self, checker: &mut Checker<'_>, key: &str, wanted: impl fmt::Display) {
        let path = self.path_of(key);
        let shown = self.value(key).map(|value| checker.shown(value.span())).unwrap_or_default();
        checker.fault(self.at_value(key), &path, format!("{path} = {shown}: {wanted}"));
    }

    /// Notes that `key`'s value is wrong without showing it, for values that may be secrets.
    pub(super) fn bad_secret(&self, checker: &mut Checker<'_>, key: &str, wanted: impl fmt::Display) {
        let path = self.path_of(key);
        checker.fault(self.at_value(key), &path, format!("{path}: {wanted}"));
    }

    /// The line of `key`'s value.
    pub(super) fn line_of(&self, checker: &Checker<'_>, key: &str) -> Option<usize> {
        self.value(key).map(|value| checker.line(value.span().start))
    }

    fn wrong_type(&self, checker: &mut Checker<'_>, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let path = self.path_of(key);
        let found = value.get_ref().type_str();
        checker.fault(value.span().start, &path, format!("{path}: must be {wanted}, not of type {found}"));
    }

    fn value(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.get(key)
    }

    fn at_value(&self, key: &str) -> usize {
        self.value(key).map_or(self.at, |value| value.span().start)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// At most the first 64 characters: comparing words takes time quadratic in their length.
fn short(key: &str) -> &str {
    key.char_indices().nth(64).map_or(key, |(end, _)| &key[..end])
}

fn unsigned(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn whole_as_float(integer: &DeInteger<'_>) -> Option<f64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|number| number as f64)
}
