//! `GET /metrics`: everything that is counted, for Prometheus.

use actix_web::http::header::{ACCEPT, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse};

use super::access;
use crate::http::context::InWork;
use crate::http::failure::Failure;

/// All metrics as text, in the format that the scraper asks for.
pub(super) async fn metrics(request: HttpRequest, context: InWork) -> Result<HttpResponse, Failure> {
    access::check(&request, &context)?;
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let exposition = context.state().metrics().render(accept);
    Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, exposition.content_type)).body(exposition.body))
}
