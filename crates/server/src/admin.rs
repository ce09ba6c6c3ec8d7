//! The admin port: metrics and probes. On this machine it needs no token; where others can reach it, everything does.

use actix_web::web::{self, ServiceConfig};

use crate::http::routes::{read, unknown_path};

mod access;
mod metrics;
mod probes;
pub(crate) mod token;

/// Adds the admin port's routes to an application.
pub(crate) fn configure(config: &mut ServiceConfig) {
    config
        .service(read("/metrics", metrics::metrics))
        .service(read("/livez", probes::live))
        .service(read("/readyz", probes::ready))
        .default_service(web::to(unknown_path));
}
