//! `GET /v2`: what this server is and which extensions of the protocol it speaks. It needs no key.

use actix_web::HttpResponse;
use insula_api::wire::ServerMetadata;

use super::json;

/// The extensions that are served; what is not served is not named.
const EXTENSIONS: [&str; 4] =
    ["binary_tensor_data", "model_repository", "model_repository(unload_dependents)", "parameters"];

/// The server's metadata.
pub(crate) async fn metadata() -> HttpResponse {
    json::ok(&ServerMetadata {
        name: "insula".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        extensions: EXTENSIONS.map(str::to_owned).to_vec(),
    })
}
