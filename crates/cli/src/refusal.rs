//! What a server says when it refuses: reads the error document of an answer and adds a hint that fits its code. It asks
//! nothing; the HTTP client passes every answer through here.

use insula_api::wire::{ErrorBody, Reason};
use insula_core::Code;

use crate::failure::Failure;
use crate::http_client::Answer;

/// The most characters of a server's own words that are shown.
const WORDS_MAX: usize = 2_000;

/// `answer` itself when its status is a good one, else the failure that it stands for. `with_key` says whether the request
/// presented a key.
pub fn accept(answer: Answer, with_key: bool) -> Result<Answer, Failure> {
    if (200..300).contains(&answer.status) {
        return Ok(answer);
    }
    let Ok(document) = serde_json::from_slice::<ErrorBody>(&answer.body) else {
        return Err(Failure::new(format_args!(
            "the server answered with status {} and no reason that can be read",
            answer.status
        ))
        .hint("check that an insula server listens there, and on that port for HTTP"));
    };
    let message = format!("{} (request {})", printable(&document.error), printable(&document.request_id));
    let failure = Failure::new(message);
    Err(match document.code().and_then(|code| hint(code, document.reason.as_ref(), with_key)) {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

fn hint(code: Code, reason: Option<&Reason>, with_key: bool) -> Option<String> {
    let hint = match code {
        Code::Unauthenticated if !with_key => {
            "give a key with `--key KEY` or `INSULA_KEY`; those of the example tenants stand in `tenants/*.toml`"
        }
        Code::Unauthenticated => {
            "a key was sent: check that it is whole, and a key of this server that is not revoked or expired"
        }
        Code::PermissionDenied => "whoever runs the server can say what the tenant and its key may do",
        Code::NotFound => "the tenant's document says by which names and versions this key may call models",
        Code::QuotaExceeded | Code::Unavailable => {
            return Some(match reason.map(|reason| reason.retry_after_ms).filter(|wait| *wait > 0) {
                Some(wait) => format!("try again in {wait} ms"),
                None => "try again later".to_owned(),
            });
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// A server's words, fit for a terminal: without control characters and not endless.
fn printable(words: &str) -> String {
    let mut shown: String = words.chars().take(WORDS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if words.chars().nth(WORDS_MAX).is_some() {
        shown.push_str(" ...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insula_api::status::{ExitCode, http_status};
    use insula_core::{Error, Refusal, RequestId};
    use ureq::http::HeaderMap;

    use super::*;

    fn answer(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, headers: HeaderMap::new(), body: body.into() }
    }

    fn refused(error: &Error, with_key: bool) -> Failure {
        let body = serde_json::to_vec(&ErrorBody::new(error, &RequestId::from_caller("r-1"))).unwrap();
        accept(answer(http_status(error.code()), body), with_key).err().unwrap()
    }

    #[test]
    fn a_good_answer_passes() {
        assert_eq!(accept(answer(200, "{}"), true).ok().unwrap().body, b"{}");
    }

    #[test]
    fn the_servers_words_and_the_request_id_are_shown() {
        let failure = refused(&Error::new(Code::Unauthenticated, "no key was given"), false);
        assert_eq!(failure.messages(), ["no key was given (request r-1)"]);
        assert!(failure.hints()[0].contains("--key"), "{failure:?}");
        assert_eq!(failure.exit_code(), ExitCode::Failed);
    }

    #[test]
    fn the_hint_depends_on_whether_a_key_was_sent() {
        let failure = refused(&Error::new(Code::Unauthenticated, "the key is not known"), true);
        assert!(failure.hints()[0].contains("revoked"), "{failure:?}");
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let refusal = |milliseconds| Refusal {
            limit: "requests_per_second",
            value: 1.0,
            used: 1.0,
            window: Duration::from_secs(1),
            retry_after: Duration::from_millis(milliseconds),
        };
        assert_eq!(refused(&Error::quota("too many", refusal(13)), true).hints(), ["try again in 13 ms"]);
        assert_eq!(refused(&Error::unavailable("draining", refusal(0)), true).hints(), ["try again later"]);
    }

    #[test]
    fn an_error_that_explains_itself_has_no_hint() {
        assert_eq!(refused(&Error::invalid("input `x` has shape [1], the model expects [2]"), true).hints(), [""; 0]);
    }

    #[test]
    fn an_answer_of_something_else_is_said_to_be_one() {
        let failure = accept(answer(502, "<html>bad gateway</html>"), true).err().unwrap();
        assert!(failure.messages()[0].contains("status 502") && failure.hints()[0].contains("insula"), "{failure:?}");
    }

    #[test]
    fn a_servers_words_cannot_steer_the_terminal() {
        assert_eq!(refused(&Error::invalid("red \u{1b}[31m\nline"), true).messages(), ["red  [31m line (request r-1)"]);
    }
}
