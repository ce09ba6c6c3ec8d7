//! The one place where an error becomes an HTTP answer: status by the api's mapping, the JSON body, `Retry-After`,
//! `WWW-Authenticate`. It decides nothing about requests. The front and the expect service call it.

use std::time::Duration;

use actix_http::body::BoxBody;
use actix_http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_http::{Response, StatusCode};
use insula_api::status::http_status;
use insula_api::wire::ErrorBody;
use insula_core::{Code, RequestId};

use super::failure::Failure;
use super::json;

/// The answer to a request that failed.
pub(crate) fn answer(failure: &Failure, id: &RequestId) -> Response<BoxBody> {
    let error = &failure.error;
    let status = failure.status.unwrap_or_else(|| status(error.code()));
    let body = json::to_bytes(&ErrorBody::new(error, id));
    let mut response = Response::with_body(status, BoxBody::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some((name, value)) = &failure.hint {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
    if matches!(error.code(), Code::QuotaExceeded | Code::Unavailable) {
        let wait = error.refusal().map_or(Duration::ZERO, |refusal| refusal.retry_after);
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds_up(wait)));
    }
    if error.code() == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The status of an error with `code`.
pub(crate) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(http_status(code)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Whole seconds, rounded up, at least 1.
fn seconds_up(wait: Duration) -> u64 {
    let up = if wait.subsec_nanos() > 0 { 1 } else { 0 };
    wait.as_secs().saturating_add(up).max(1)
}

#[cfg(test)]
mod tests {
    use insula_core::{Error, Refusal};

    use super::*;

    fn refused(retry_after: Duration) -> Failure {
        let refusal = Refusal { limit: "queue", value: 1.0, used: 1.0, window: Duration::ZERO, retry_after };
        Error::quota("the queue is full", refusal).into()
    }

    #[test]
    fn a_refusal_says_in_whole_seconds_when_to_come_back() {
        for (wait, told) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (59_001, "60")] {
            let response = answer(&refused(Duration::from_millis(wait)), &RequestId::from_caller("r"));
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers().get(RETRY_AFTER).unwrap(), told);
        }
    }

    #[test]
    fn the_log_s_detail_stays_out_of_the_answer() {
        let failure = Error::internal("it failed", "open /srv/secret").into();
        let response = answer(&failure, &RequestId::from_caller("r"));
        let body = actix_http::body::MessageBody::try_into_bytes(response.into_body()).unwrap();
        assert_eq!(&body[..], br#"{"error":"it failed","code":"internal","request_id":"r"}"#);
    }
}
