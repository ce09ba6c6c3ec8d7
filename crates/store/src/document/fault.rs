//! What can be wrong with a document: one fault with its place, and all faults of a document together as an error. They
//! carry no secrets: the checker decides what of the text may be shown.

use std::fmt;

use insula_core::Error;

/// One thing that is wrong in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line it stands on, from 1; `None` when it is about the whole file.
    pub line: Option<usize>,
    /// The path of the key it is about (`quota.weight`, `keys[0].sha256`, counted from 0); empty when it is about the text
    /// itself.
    pub key: String,
    /// The whole sentence, with the key and its value: `quota.weight = 0: must be 0.01 to 1000`.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// All faults of a document, in the order of their lines; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFaults(Vec<Fault>);

impl DocumentFaults {
    /// The most faults that are reported of one document; one more says how many there were beyond.
    pub const MAX: usize = 100;

    /// Sorts and shortens `faults`; `None` if there are none.
    pub(super) fn new(mut faults: Vec<Fault>, beyond: usize) -> Option<DocumentFaults> {
        faults.sort_by_key(|fault| fault.line);
        if beyond > 0 {
            faults.push(Fault { line: None, key: String::new(), message: format!("and {beyond} more faults") });
        }
        if faults.is_empty() { None } else { Some(DocumentFaults(faults)) }
    }

    /// One fault about the whole file.
    pub(crate) fn of_file(message: impl Into<String>) -> DocumentFaults {
        DocumentFaults(vec![Fault { line: None, key: String::new(), message: message.into() }])
    }

    /// The faults.
    pub fn faults(&self) -> &[Fault] {
        &self.0
    }

    /// The faults, by value.
    pub fn into_faults(self) -> Vec<Fault> {
        self.0
    }
}

impl fmt::Display for DocumentFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for DocumentFaults {}

impl From<DocumentFaults> for Error {
    fn from(faults: DocumentFaults) -> Error {
        Error::invalid(faults.to_string())
    }
}
