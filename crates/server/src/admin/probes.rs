//! `GET /livez` and `GET /readyz`, for whoever watches the process: is it there, should it get requests.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;

use super::access;
use crate::http::context::InWork;
use crate::http::failure::Failure;
use crate::http::json;

#[derive(Serialize)]
struct Live {
    live: bool,
}

#[derive(Serialize)]
struct Ready {
    ready: bool,
    reasons: Vec<String>,
}

/// Always 200 while the process runs.
pub(super) async fn live(request: HttpRequest, context: InWork) -> Result<HttpResponse, Failure> {
    access::check(&request, &context)?;
    Ok(json::ok(&Live { live: true }))
}

/// 200, or 503 with the reasons.
pub(super) async fn ready(request: HttpRequest, context: InWork) -> Result<HttpResponse, Failure> {
    access::check(&request, &context)?;
    let health = context.state().health();
    let mut response = json::ok(&Ready { ready: health.ready, reasons: health.reasons });
    if !health.ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}
