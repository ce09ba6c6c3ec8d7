//! JSON answers of the small endpoints. The types come from the api crate; this only writes them.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use serde::Serialize;

/// `value` as JSON text.
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("the protocol's documents have no maps and no failing fields")
}

/// 200 with `value` as JSON.
pub(crate) fn ok<T: Serialize>(value: &T) -> HttpResponse {
    HttpResponse::Ok().insert_header(ContentType::json()).body(to_bytes(value))
}
