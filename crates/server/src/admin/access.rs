//! Who may use the admin port: everybody who reaches it on a loopback address, else whoever has the token.

use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;
use insula_core::{Code, Error};
use insula_store::hash_key;

use crate::http::context::RequestContext;
use crate::http::failure::Failure;

/// Refuses unless the port is open to whoever reaches it or the request carries the token. Hashes are compared, so that
/// the time it takes tells nothing of the token.
pub(super) fn check(request: &HttpRequest, context: &RequestContext) -> Result<(), Failure> {
    let Some(expected) = context.state().admin_token() else { return Ok(()) };
    let value = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scheme = value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer "));
    let token = value.get(7..).unwrap_or_default().trim();
    if scheme && hash_key(token) == expected {
        return Ok(());
    }
    let message =
        "the admin port needs `Authorization: Bearer TOKEN`; the token is INSULA_ADMIN_TOKEN or in STATE/admin.token";
    Err(Error::new(Code::Unauthenticated, message).into())
}
