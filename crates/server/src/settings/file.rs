//! Settings from the TOML file: tables `[server]`, `[requests]`, `[log]` and `[otlp]`. Unknown keys and values that are no
//! text, number or truth are faults with their line. It knows no key's meaning; the table of keys does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::fault::Faults;
use super::key::{self, Given, KEYS};

/// The largest file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// What the file says.
#[derive(Debug, Default)]
pub(super) struct FromFile {
    pub(super) path: Option<PathBuf>,
    pub(super) given: Vec<Given>,
}

/// Reads the file at `path`. One that is missing is a fault if somebody named it.
pub(super) fn read(path: &Path, named: bool, faults: &mut Faults) -> FromFile {
    let shown = path.display();
    let text = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > BYTES_MAX => Err("is larger than 1 MiB, the most it may have".to_owned()),
        Ok(_) => fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !named => return FromFile::default(),
        Err(error) => Err(format!("cannot be read: {error}")),
    };
    match text {
        Ok(text) => FromFile { path: Some(path.to_owned()), given: parse(&text, &shown.to_string(), faults) },
        Err(message) => {
            faults.note(shown, "", message);
            FromFile::default()
        }
    }
}

fn parse(text: &str, file: &str, faults: &mut Faults) -> Vec<Given> {
    let place = |at: usize| {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        format!("{file} line {line}")
    };
    let (root, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        for error in &syntax {
            faults.note(place(error.span().map_or(0, |span| span.start)), "", error.message());
        }
        return Vec::new();
    }
    let mut given = Vec::new();
    for (table, value) in root.get_ref() {
        let Some(keys) = value.get_ref().as_table().filter(|_| is_table(table.get_ref())) else {
            faults.note(place(table.span().start), "", unknown(table.get_ref()));
            continue;
        };
        for (name, value) in keys {
            let path = format!("{}.{}", table.get_ref(), name.get_ref());
            let Some(key) = key::by_path(&path) else {
                faults.note(place(name.span().start), "", unknown(&path));
                continue;
            };
            match scalar(value.get_ref()) {
                Some(value) => given.push(Given { key, value, place: place(name.span().start) }),
                None => faults.note(place(name.span().start), key.path, "must be text, a number, true or false"),
            }
        }
    }
    given
}

fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.path.split('.').next() == Some(name))
}

fn unknown(path: &str) -> String {
    let shown: String = path.chars().take(80).collect();
    format!("unknown key `{shown}`; the nearest known one is `{}`", key::nearest_path(path))
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}
