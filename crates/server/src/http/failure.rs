//! A failure on its way to the caller: insula's error and, where HTTP has a status of its own that no code stands for
//! (405, 408), that status. Handlers return it; the front turns it into an answer.

use std::fmt;

use actix_http::StatusCode;
use actix_http::header::{ACCEPT_ENCODING, ALLOW, HeaderName};
use actix_web::ResponseError;
use insula_core::{Code, Error};

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What went wrong.
    pub(crate) error: Error,
    /// The status, where it is not the code's.
    pub(crate) status: Option<StatusCode>,
    /// A header that tells the caller what would do.
    pub(crate) hint: Option<(HeaderName, &'static str)>,
}

impl Failure {
    /// The path exists, the verb does not: `allowed` are those that do.
    pub(crate) fn wrong_verb(verb: &str, path: &str, allowed: &'static str) -> Failure {
        let (verb, path) = (shown(verb), shown(path));
        Failure {
            error: Error::new(Code::Unsupported, format!("{verb:?} is not a verb for {path}: use {allowed}")),
            status: Some(StatusCode::METHOD_NOT_ALLOWED),
            hint: Some((ALLOW, allowed)),
        }
    }

    /// There is nothing at the path.
    pub(crate) fn unknown_path(path: &str) -> Failure {
        let path = shown(path);
        Error::not_found(format!(
            "there is nothing at {path:?}: the paths begin with /v2, see the Open Inference Protocol"
        ))
        .into()
    }

    /// The body came too slowly: the caller's delay, not the server's, so 408 and not 504.
    pub(crate) fn slow_body(message: String) -> Failure {
        Failure {
            error: Error::new(Code::DeadlineExceeded, message),
            status: Some(StatusCode::REQUEST_TIMEOUT),
            hint: None,
        }
    }

    /// The body is packed in a way that is not offered here; `offered` are the ways that are.
    pub(crate) fn wrong_encoding(error: Error, offered: &'static str) -> Failure {
        Failure { error, status: None, hint: Some((ACCEPT_ENCODING, offered)) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, status: None, hint: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// So that handlers can return it; the answer is made by the front, which knows the request's id.
impl ResponseError for Failure {}

/// The beginning of what a caller sent, for messages.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
