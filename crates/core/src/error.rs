//! The one error type that crosses crate borders and its closed list of codes. It knows no status numbers: one file at
//! the edge maps codes to HTTP, gRPC and exit codes. Everybody makes these; only the edge turns them into answers.

use std::fmt;
use std::time::Duration;

/// A result with insula's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was: the closed list that callers may switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request, document or file is malformed or does not fit the model.
    InvalidArgument,
    /// No key, or one that is unknown, expired or revoked.
    Unauthenticated,
    /// The key is good, but what it asks for is not allowed (a suspended tenant, a missing scope).
    PermissionDenied,
    /// No such model, version, tenant or path (also: not this tenant's).
    NotFound,
    /// The state of things forbids it: it exists already, or the folder is read-only.
    Conflict,
    /// A body, or what it unpacks to, is over the size limit.
    PayloadTooLarge,
    /// A well-formed wish for something that insula does not offer.
    Unsupported,
    /// The tenant's own limit is reached; the refusal says which.
    QuotaExceeded,
    /// The server cannot take it now: overload, draining, starting, a failed part.
    Unavailable,
    /// The deadline passed before the answer was ready.
    DeadlineExceeded,
    /// The caller went away or withdrew the request.
    Cancelled,
    /// A fault of insula's own.
    Internal,
}

impl Code {
    /// All codes, in the order of the documentation.
    pub const ALL: [Code; 12] = [
        Code::InvalidArgument,
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::NotFound,
        Code::Conflict,
        Code::PayloadTooLarge,
        Code::Unsupported,
        Code::QuotaExceeded,
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Cancelled,
        Code::Internal,
    ];

    /// The word for this code on the wire and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidArgument => "invalid_argument",
            Code::Unauthenticated => "unauthenticated",
            Code::PermissionDenied => "permission_denied",
            Code::NotFound => "not_found",
            Code::Conflict => "conflict",
            Code::PayloadTooLarge => "payload_too_large",
            Code::Unsupported => "unsupported",
            Code::QuotaExceeded => "quota_exceeded",
            Code::Unavailable => "unavailable",
            Code::DeadlineExceeded => "deadline_exceeded",
            Code::Cancelled => "cancelled",
            Code::Internal => "internal",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which limit refused a request, and when to come back.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The limit's name as in the tenant document or the server's settings (`requests_per_second`, `concurrency`,
    /// `memory`, `server_memory`, ...), or a state (`tenant_deleted`, `draining`).
    pub limit: &'static str,
    /// The limit's value in its own unit (requests, bytes, requests per second).
    pub value: f64,
    /// What was in use, in the same unit, when the refusal was made.
    pub used: f64,
    /// The window over which the limit counts; zero for limits that count what is in use now.
    pub window: Duration,
    /// When a retry has a good chance.
    pub retry_after: Duration,
}

/// An error with its code, a message for the caller and, for refusals, the limit that was hit.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq)]
struct Inner {
    code: Code,
    message: String,
    refusal: Option<Refusal>,
    detail: Option<String>,
}

impl Error {
    /// An error of `code`. `message` is for the caller: it names what was wrong, the value, what was expected and what to do.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { code, message: message.into(), refusal: None, detail: None }))
    }

    /// Shorthand for [`Code::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(Code::InvalidArgument, message)
    }

    /// Shorthand for [`Code::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Error::new(Code::NotFound, message)
    }

    /// Shorthand for [`Code::Internal`]; `detail` goes to the log and never to the caller.
    pub fn internal(message: impl Into<String>, detail: impl Into<String>) -> Self {
        Error::new(Code::Internal, message).with_detail(detail)
    }

    /// A refusal by a tenant's own limit ([`Code::QuotaExceeded`]).
    pub fn quota(message: impl Into<String>, refusal: Refusal) -> Self {
        Error::new(Code::QuotaExceeded, message).with_refusal(refusal)
    }

    /// A refusal because the server cannot take it now ([`Code::Unavailable`]).
    pub fn unavailable(message: impl Into<String>, refusal: Refusal) -> Self {
        Error::new(Code::Unavailable, message).with_refusal(refusal)
    }

    /// Adds the limit that was hit.
    #[must_use]
    pub fn with_refusal(mut self, refusal: Refusal) -> Self {
        self.0.refusal = Some(refusal);
        self
    }

    /// Adds what only the log may say (paths, system errors).
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Puts `context` and a colon before the message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The limit that was hit, for refusals.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// What only the log may say.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)?;
        if let Some(detail) = &self.0.detail {
            write!(f, " ({detail})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_word() {
        let words: std::collections::HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn details_stay_out_of_what_callers_see() {
        let error = Error::internal("the model could not be read", "open /srv/x: EACCES").context("model `digits`");
        assert_eq!(error.to_string(), "model `digits`: the model could not be read");
        assert!(format!("{error:?}").contains("EACCES"));
    }
}
