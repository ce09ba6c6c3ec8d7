//! The body of every answer that failed. Made from insula's error at the edge and read back by the client; details meant for
//! the log never enter it.

use std::borrow::Cow;

use insula_core::{Code, Error, Refusal, RequestId};
use serde::{Deserialize, Serialize};

/// `{"error", "code", "request_id"}` and, for refusals, `reason`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The message for the caller.
    pub error: String,
    /// The word of the code, e.g. `quota_exceeded`.
    pub code: Cow<'static, str>,
    /// The request's id.
    pub request_id: String,
    /// Which limit refused it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Reason>,
}

/// Which limit refused a request, in its own unit, and when to come back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The limit's name.
    pub limit: Cow<'static, str>,
    /// Its value.
    pub value: f64,
    /// What was in use.
    pub used: f64,
    /// The window over which it counts; 0 for limits on what is in use now.
    pub window_ms: u64,
    /// When a retry has a good chance.
    pub retry_after_ms: u64,
}

impl ErrorBody {
    /// The body for `error` in the request `request_id`.
    pub fn new(error: &Error, request_id: &RequestId) -> ErrorBody {
        ErrorBody {
            error: error.message().to_owned(),
            code: Cow::Borrowed(error.code().as_str()),
            request_id: request_id.to_string(),
            reason: error.refusal().map(Reason::from),
        }
    }

    /// The code that the body's word stands for; `None` for a word of a newer server.
    pub fn code(&self) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.as_str() == self.code)
    }
}

impl From<&Refusal> for Reason {
    fn from(refusal: &Refusal) -> Reason {
        let milliseconds = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Reason {
            limit: Cow::Borrowed(refusal.limit),
            value: refusal.value,
            used: refusal.used,
            window_ms: milliseconds(refusal.window),
            // rounded up, so that a short wait is not told as none
            retry_after_ms: u64::try_from(refusal.retry_after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_says_which_limit_and_when_to_come_back() {
        let refusal = Refusal {
            limit: "requests_per_second",
            value: 200.0,
            used: 200.0,
            window: Duration::from_secs(1),
            retry_after: Duration::from_micros(4200),
        };
        let error = Error::quota("the tenant's rate is used up", refusal).with_detail("secret");
        let body = ErrorBody::new(&error, &RequestId::from_caller("r-1"));
        let text = serde_json::to_string(&body).unwrap();
        assert_eq!(
            text,
            "{\"error\":\"the tenant's rate is used up\",\"code\":\"quota_exceeded\",\"request_id\":\"r-1\",\"reason\":\
             {\"limit\":\"requests_per_second\",\"value\":200.0,\"used\":200.0,\"window_ms\":1000,\"retry_after_ms\":5}}"
        );
        assert_eq!(serde_json::from_str::<ErrorBody>(&text).unwrap(), body);
        assert_eq!(body.code(), Some(Code::QuotaExceeded));
    }

    #[test]
    fn a_plain_error_has_no_reason() {
        let body = ErrorBody::new(&Error::not_found("no such model"), &RequestId::from_caller("r-2"));
        assert_eq!(
            serde_json::to_string(&body).unwrap(),
            "{\"error\":\"no such model\",\"code\":\"not_found\",\"request_id\":\"r-2\"}"
        );
    }
}
