//! One line of the doctor's report: how good, about what, the value found, and what to do if it is not good. It looks at
//! nothing; the checks make findings and the report prints them.

use std::fmt;

use serde::Serialize;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// The server runs, but less well than it could.
    Warn,
    /// The server would not start, or would fail under use.
    Bad,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How good it is.
    pub level: Level,
    /// What was looked at, e.g. `open files`.
    pub what: &'static str,
    /// What was found.
    pub value: String,
    /// What to do; `None` when there is nothing to do.
    pub advice: Option<String>,
}

impl Finding {
    /// As it should be.
    pub fn ok(what: &'static str, value: impl fmt::Display) -> Finding {
        Finding { level: Level::Ok, what, value: value.to_string(), advice: None }
    }

    /// The server runs less well than it could; `advice` says what to do.
    pub fn warn(what: &'static str, value: impl fmt::Display, advice: impl fmt::Display) -> Finding {
        Finding { level: Level::Warn, what, value: value.to_string(), advice: Some(advice.to_string()) }
    }

    /// The server would not start or would fail; `advice` says what to do.
    pub fn bad(what: &'static str, value: impl fmt::Display, advice: impl fmt::Display) -> Finding {
        Finding { level: Level::Bad, what, value: value.to_string(), advice: Some(advice.to_string()) }
    }
}

impl Level {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Bad => "bad",
        }
    }
}
