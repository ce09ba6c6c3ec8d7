//! The `[[keys]]` tables. A value that is wrong is never shown in a fault: it may be a key's secret text in the place of
//! its hash.

use std::collections::HashMap;

use insula_core::KeyId;

use super::checker::Checker;
use super::section::Section;
use crate::key::{KeyRecord, hash_from_hex};

const KEYS: [&str; 4] = ["id", "sha256", "created", "expires"];

/// The keys, and the line of each one's hash.
pub(super) fn read(root: &Section<'_>, checker: &mut Checker<'_>) -> (Vec<KeyRecord>, Vec<usize>) {
    let mut ids: HashMap<KeyId, usize> = HashMap::new();
    let mut hashes: HashMap<[u8; 32], usize> = HashMap::new();
    let (mut keys, mut lines) = (Vec::new(), Vec::new());
    for (index, section) in root.tables(checker, "keys").into_iter().enumerate() {
        let Some(key) = read_one(&section, checker) else { continue };
        if let Some(first) = ids.insert(key.id.clone(), index) {
            section.bad_value(checker, "id", format_args!("is also the id of keys[{first}]; ids must differ"));
        }
        if let Some(first) = hashes.insert(key.sha256, index) {
            section.bad_secret(checker, "sha256", format_args!("is the same key as keys[{first}]; remove one"));
        }
        lines.push(section.line_of(checker, "sha256").unwrap_or_default());
        keys.push(key);
    }
    (keys, lines)
}

fn read_one(section: &Section<'_>, checker: &mut Checker<'_>) -> Option<KeyRecord> {
    section.refuse_others(checker, &KEYS, &["scopes"]);
    section.require(checker, "id", "the key's id, such as `id = \"k_1\"`");
    let hash_there = section.require(checker, "sha256", "the SHA-256 of the key, 64 hexadecimal digits");
    section.require(checker, "created", "when it was made, such as `created = 2026-12-01T00:00:00Z`");
    let id = section.parsed::<KeyId>(checker, "id");
    let sha256 = if hash_there { read_hash(section, checker) } else { None };
    let created = section.timestamp(checker, "created");
    let expires = section.timestamp(checker, "expires");
    if let (Some(created), Some(expires)) = (created, expires)
        && expires <= created
    {
        section.bad_value(checker, "expires", "must be later than `created`");
    }
    Some(KeyRecord { id: id?, sha256: sha256?, created: created?, expires })
}

fn read_hash(section: &Section<'_>, checker: &mut Checker<'_>) -> Option<[u8; 32]> {
    let text = section.string(checker, "sha256")?;
    let hash = hash_from_hex(text);
    if hash.is_none() {
        let wanted = "must be the SHA-256 of the key, 64 hexadecimal digits, and not the key itself";
        section.bad_secret(checker, "sha256", wanted);
    }
    hash
}
