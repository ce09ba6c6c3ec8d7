//! Who is calling: takes the key from the headers and asks the directory whose it is. A wrong key's answer is slowed for
//! those who try many. It keeps no key and logs none.

use std::borrow::Cow;

use actix_http::header::{AUTHORIZATION, HeaderMap};
use insula_core::{Code, Error, Result};
use insula_runtime::tenant::TenantHandle;

use super::context::RequestContext;

/// The header that carries a key alone.
const X_API_KEY: &str = "x-api-key";

/// The longest key that is hashed; ours are under 64 characters.
const KEY_BYTES_MAX: usize = 1024;

/// The tenant whose key the request carries. The answer to a wrong key waits here if its address tried many; the body of
/// the request stays in the kernel meanwhile.
pub(crate) async fn authenticate(context: &RequestContext, headers: &HeaderMap) -> Result<TenantHandle> {
    let state = context.state();
    let key = presented(headers)?;
    let refused = match state.directory()?.authenticate(&key) {
        Ok(tenant) => {
            context.set_tenant(tenant.id());
            return Ok(tenant);
        }
        Err(refused) => refused,
    };
    if let Some(wait) = state.failed_keys().note(context.peer().ip(), state.now()) {
        tokio::time::sleep(wait).await;
    }
    Err(refused)
}

/// The key in `Authorization: Bearer KEY` or `X-API-Key: KEY`.
fn presented(headers: &HeaderMap) -> Result<Cow<'_, str>> {
    let bytes = match headers.get(AUTHORIZATION) {
        Some(value) => bearer(value.as_bytes())
            .ok_or_else(|| unauthenticated("the header `Authorization` is not of the form `Bearer KEY`"))?,
        None => match headers.get(X_API_KEY) {
            Some(value) => value.as_bytes().trim_ascii(),
            None => {
                return Err(unauthenticated(
                    "the request has no key: send `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                ));
            }
        },
    };
    if bytes.is_empty() || bytes.len() > KEY_BYTES_MAX {
        return Err(unauthenticated("the key is empty or too long to be one"));
    }
    Ok(String::from_utf8_lossy(bytes))
}

/// What follows the scheme, which is written in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.trim_ascii().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

fn unauthenticated(message: &str) -> Error {
    Error::new(Code::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    use actix_http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn both_headers_and_any_case_of_the_scheme_are_taken() {
        for (name, value) in [
            ("authorization", "Bearer k1"),
            ("authorization", "bearer  k1 "),
            ("authorization", "BEARER k1"),
            ("x-api-key", "k1"),
        ] {
            assert_eq!(presented(&headers(name, value)).unwrap(), "k1", "{name}: {value}");
        }
    }

    #[test]
    fn anything_else_is_no_key() {
        for (name, value) in [
            ("authorization", "Basic azE6"),
            ("authorization", "Bearer"),
            ("authorization", "Bearer "),
            ("x-api-key", ""),
            ("cookie", "k1"),
        ] {
            assert_eq!(presented(&headers(name, value)).unwrap_err().code(), Code::Unauthenticated, "{name}: {value}");
        }
    }
}
