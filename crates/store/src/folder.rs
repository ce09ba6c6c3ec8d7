//! The tenants folder: one TOML document a file. A bad document is reported with its file and all its faults and does not
//! stop the others; documents that contradict each other are all refused, and each names the other. It reads once, and
//! watches and writes nothing; the server calls it at start and at each reload.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use insula_core::{Code, Error};

use crate::document::{DocumentFaults, Fault, Lines, TenantDocument, parse_with_lines};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// The most documents in a folder.
pub const DOCUMENTS_MAX: usize = 10_000;

/// What a tenants folder holds.
#[derive(Debug, Clone, Default)]
pub struct TenantsFolder {
    /// The good documents with their files, in the order of the files' names; ids, UUIDs and keys are unique among them.
    pub tenants: Vec<(PathBuf, TenantDocument)>,
    /// The others.
    pub faults: Vec<DocumentFault>,
}

/// A document that cannot be used, and all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFault {
    /// Its file.
    pub file: PathBuf,
    /// Its faults, in the order of their lines; never empty.
    pub faults: Vec<Fault>,
}

impl fmt::Display for DocumentFault {
    /// One line a fault: `FILE: line N: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{}: {fault}", if index == 0 { "" } else { "\n" }, self.file.display())?;
        }
        Ok(())
    }
}

impl TenantsFolder {
    /// Reads every `*.toml` of `folder` whose name does not begin with a dot (links are followed, folders not entered).
    /// Fails only if the folder itself cannot be listed or holds more than [`DOCUMENTS_MAX`] documents.
    pub fn read(folder: &Path) -> Result<TenantsFolder, Error> {
        let mut result = TenantsFolder::default();
        let mut parsed = Vec::new();
        for file in list(folder)? {
            match read_text(&file).and_then(|text| parse_with_lines(&text)) {
                Ok((document, lines)) => parsed.push(Parsed { file, document, lines }),
                Err(faults) => result.faults.push(DocumentFault { file, faults: faults.into_faults() }),
            }
        }
        let mut contradictions = contradictions(&parsed);
        for (index, Parsed { file, document, .. }) in parsed.into_iter().enumerate() {
            match contradictions.remove(&index) {
                Some(faults) => result.faults.push(DocumentFault { file, faults }),
                None => result.tenants.push((file, document)),
            }
        }
        result.faults.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(result)
    }
}

struct Parsed {
    file: PathBuf,
    document: TenantDocument,
    lines: Lines,
}

fn list(folder: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let unreadable = |error: std::io::Error| {
        let shown = folder.display();
        Error::new(Code::InvalidArgument, format!("the tenants folder {shown} cannot be read: {error}"))
    };
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().first() == Some(&b'.');
        let path = entry.path();
        if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
            files.insert(path);
        }
        if files.len() > DOCUMENTS_MAX {
            let shown = folder.display();
            return Err(Error::invalid(format!(
                "the tenants folder {shown} holds more than {DOCUMENTS_MAX} documents: remove some"
            )));
        }
    }
    Ok(files)
}

fn read_text(path: &Path) -> Result<String, DocumentFaults> {
    let unreadable = |error: std::io::Error| DocumentFaults::of_file(format!("cannot be read: {error}"));
    // Asked before opening: to open a pipe would wait for its writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(DocumentFaults::of_file("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        return Err(DocumentFaults::of_file("is larger than 1 MiB, the most a document may have"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        DocumentFaults::of_file(format!("line {line} is not UTF-8"))
    })
}

/// For each document, by its position, what in it belongs to another as well.
fn contradictions(parsed: &[Parsed]) -> BTreeMap<usize, Vec<Fault>> {
    let mut faults = BTreeMap::<usize, Vec<Fault>>::new();
    find_shared(
        parsed,
        &mut faults,
        |document| vec![(document.document.id.clone(), document.lines.id)],
        |id| ("id".to_owned(), format!("id = \"{id}\"")),
    );
    find_shared(
        parsed,
        &mut faults,
        |document| document.document.uuid.map(|uuid| (uuid, document.lines.uuid)).into_iter().collect(),
        |uuid| ("uuid".to_owned(), format!("uuid = \"{uuid}\"")),
    );
    find_shared(
        parsed,
        &mut faults,
        |document| {
            let keys = document.document.keys.iter().zip(&document.lines.keys);
            keys.map(|(key, line)| (key.sha256, Some(*line))).collect()
        },
        |_| ("keys".to_owned(), "keys: the key on this line".to_owned()),
    );
    faults
}

/// Notes each value that more than one document has, in all of them, with the other's file.
fn find_shared<T: Ord>(
    parsed: &[Parsed],
    faults: &mut BTreeMap<usize, Vec<Fault>>,
    values: impl Fn(&Parsed) -> Vec<(T, Option<usize>)>,
    describe: impl Fn(&T) -> (String, String),
) {
    let mut owners = BTreeMap::<T, Vec<(usize, Option<usize>)>>::new();
    for (index, document) in parsed.iter().enumerate() {
        for (value, line) in values(document) {
            owners.entry(value).or_default().push((index, line));
        }
    }
    for (value, places) in owners.iter().filter(|(_, places)| places.len() > 1) {
        for (position, (index, line)) in places.iter().enumerate() {
            let other = places[usize::from(position == 0)].0;
            let (key, subject) = describe(value);
            let message = format!("{subject} is also in {}; both are left out", parsed[other].file.display());
            faults.entry(*index).or_default().push(Fault { line: *line, key, message });
        }
    }
}
