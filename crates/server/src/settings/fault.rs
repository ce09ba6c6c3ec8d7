//! What is wrong with the settings: each fault with its place (file and line, variable or flag) and its key. It decides
//! nothing; sources note faults here, and the command line prints them all.

use std::fmt;

use insula_core::Error;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// Where it stands: `insula.toml line 3`, `INSULA_WORKERS` or `--workers`.
    pub place: String,
    /// The setting's key, e.g. `server.workers`; empty when it is about a whole source.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All faults of the settings; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFaults(Vec<SettingFault>);

impl SettingsFaults {
    /// The faults, in the order file, environment, flags.
    pub fn faults(&self) -> &[SettingFault] {
        &self.0
    }
}

impl fmt::Display for SettingsFaults {
    /// One line a fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsFaults {}

impl From<SettingsFaults> for Error {
    fn from(faults: SettingsFaults) -> Error {
        Error::invalid(faults.to_string())
    }
}

/// Faults while they are gathered.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<SettingFault>);

impl Faults {
    pub(super) fn note(&mut self, place: impl fmt::Display, key: &str, message: impl Into<String>) {
        self.0.push(SettingFault { place: place.to_string(), key: key.to_owned(), message: message.into() });
    }

    pub(super) fn finish(self) -> Result<(), SettingsFaults> {
        if self.0.is_empty() { Ok(()) } else { Err(SettingsFaults(self.0)) }
    }
}
