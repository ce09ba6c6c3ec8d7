//! Why a model could not be loaded: a kind, and a message that names the node and what was expected. It never quotes a
//! file's contents or a path of the host. Everything here returns it; at the crate's border it becomes core's error.

use std::fmt;

use insula_core::{Code, Error};

/// What kind of fault stopped a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadErrorKind {
    /// The file breaks ONNX's rules: truncated, cyclic, sizes that do not add up.
    Malformed,
    /// Well-formed, but an operator, attribute, type or shape that is not supported.
    Unsupported,
    /// External data that is missing, short, or not inside the version's folder.
    ExternalData,
    /// Larger than a limit: bytes, nodes, elements.
    Limit,
    /// `model.toml` or the options.
    Settings,
    /// No such model or version.
    Missing,
    /// The disk failed.
    Storage,
    /// A fault of insula's own.
    Internal,
    /// The rows of a batch would meet: it can be served with each request alone.
    RowsMeet,
    /// The values of some inputs decide shapes: see [`LoadError::inputs`].
    NeedsValues,
}

/// Why a model could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadError {
    kind: LoadErrorKind,
    message: String,
    detail: Option<String>,
    inputs: Vec<usize>,
}

/// A result with a [`LoadError`].
pub type LoadResult<T> = Result<T, LoadError>;

impl LoadError {
    /// An error of `kind`; `message` is for the caller.
    pub fn new(kind: LoadErrorKind, message: impl Into<String>) -> LoadError {
        LoadError { kind, message: message.into(), detail: None, inputs: Vec::new() }
    }

    /// Shorthand for [`LoadErrorKind::Malformed`].
    pub fn malformed(message: impl Into<String>) -> LoadError {
        LoadError::new(LoadErrorKind::Malformed, message)
    }

    /// Shorthand for [`LoadErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> LoadError {
        LoadError::new(LoadErrorKind::Unsupported, message)
    }

    /// Shorthand for [`LoadErrorKind::Limit`].
    pub fn limit(message: impl Into<String>) -> LoadError {
        LoadError::new(LoadErrorKind::Limit, message)
    }

    /// Shorthand for [`LoadErrorKind::Internal`]; `detail` is for the log.
    pub fn internal(message: impl Into<String>, detail: impl Into<String>) -> LoadError {
        LoadError::new(LoadErrorKind::Internal, message).with_detail(detail)
    }

    /// A failure of the disk while doing `what`; the system's words are for the log.
    pub fn storage(what: &str, error: &dyn std::error::Error) -> LoadError {
        LoadError::new(LoadErrorKind::Storage, format!("could not {what}")).with_detail(error.to_string())
    }

    /// Adds what only the log may say.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> LoadError {
        self.detail = Some(detail.into());
        self
    }

    /// Puts `context` and a colon before the message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> LoadError {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The kind.
    pub fn kind(&self) -> LoadErrorKind {
        self.kind
    }

    /// The message for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The shape of some value depends on the values of these inputs, by their positions.
    pub fn needs_values(message: impl Into<String>, inputs: Vec<usize>) -> LoadError {
        LoadError { inputs, ..LoadError::new(LoadErrorKind::NeedsValues, message) }
    }

    /// The inputs whose values decide shapes, of an error of kind [`LoadErrorKind::NeedsValues`].
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }
}

/// Shapes and constants that do not add up are the file's fault.
impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        let kind = match error.code() {
            Code::Internal => LoadErrorKind::Internal,
            _ => LoadErrorKind::Malformed,
        };
        LoadError {
            kind,
            message: error.message().to_string(),
            detail: error.detail().map(str::to_string),
            inputs: Vec::new(),
        }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        let code = match error.kind {
            LoadErrorKind::Missing => Code::NotFound,
            LoadErrorKind::Storage | LoadErrorKind::Internal => Code::Internal,
            LoadErrorKind::Malformed
            | LoadErrorKind::Unsupported
            | LoadErrorKind::ExternalData
            | LoadErrorKind::Limit
            | LoadErrorKind::Settings
            | LoadErrorKind::RowsMeet
            | LoadErrorKind::NeedsValues => Code::InvalidArgument,
        };
        let made = Error::new(code, error.message);
        match error.detail {
            Some(detail) => made.with_detail(detail),
            None => made,
        }
    }
}

/// A name from a file as messages show it: in backticks, control characters escaped, cut after 80 characters.
pub(crate) fn quoted(name: &str) -> String {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    let dots = if name.chars().nth(80).is_some() { "..." } else { "" };
    format!("`{shown}{dots}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_is_the_callers_fault_and_a_broken_disk_is_not() {
        assert_eq!(Error::from(LoadError::malformed("x")).code(), Code::InvalidArgument);
        assert_eq!(Error::from(LoadError::unsupported("x")).code(), Code::InvalidArgument);
        let disk = Error::from(LoadError::storage("read the model", &std::io::Error::other("EIO at /srv/x")));
        assert_eq!(disk.code(), Code::Internal);
        assert!(!disk.message().contains("/srv"));
        assert!(disk.detail().is_some_and(|detail| detail.contains("/srv")));
    }

    #[test]
    fn names_from_files_are_cut_and_escaped() {
        assert_eq!(quoted("a\nb"), "`a\\nb`");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 85);
    }
}
