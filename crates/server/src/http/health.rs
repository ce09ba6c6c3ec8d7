//! `GET /v2/health/live` and `/v2/health/ready`: whether the process runs, and whether it takes requests. They need no key
//! and ask nobody.

use actix_web::{HttpResponse, http::StatusCode};
use insula_api::wire::{LiveBody, ReadyBody};

use super::context::InWork;
use super::json;

/// Always 200 while the process runs, also while it starts or stops.
pub(crate) async fn live() -> HttpResponse {
    json::ok(&LiveBody { live: true })
}

/// 200, or 503 while the server starts, stops or has lost a part that serving needs.
pub(crate) async fn ready(context: InWork) -> HttpResponse {
    let ready = context.state().health().ready;
    let mut response = json::ok(&ReadyBody { ready });
    if !ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}
