//! The paths of the protocol and their handlers. A path that is not here is 404, a verb that a path does not have is 405.

use actix_web::guard::{self, Guard};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource};

use super::failure::Failure;
use super::{health, infer, model_metadata, repository, server_metadata};

/// The verbs of a path that is read.
const READ: &str = "GET, HEAD";
/// The verb of a path that does something.
const ACT: &str = "POST";

/// A model, and one of its versions.
const MODELS: [&str; 2] = ["/v2/models/{model}", "/v2/models/{model}/versions/{version}"];

/// Adds every route to an application.
pub(crate) fn configure(config: &mut ServiceConfig) {
    // paths are tried in this order: the one that nearly every request has comes first
    for model in MODELS {
        config.service(act(&format!("{model}/infer"), infer::infer));
    }
    config
        .service(read("/v2", server_metadata::metadata))
        .service(read("/v2/health/live", health::live))
        .service(read("/v2/health/ready", health::ready));
    for model in MODELS {
        config
            .service(read(model, model_metadata::metadata))
            .service(read(&format!("{model}/ready"), model_metadata::ready));
    }
    for repository in ["/v2/repository", "/v2/repository/{repository}"] {
        config
            .service(act(&format!("{repository}/index"), repository::index))
            .service(act(&format!("{repository}/models/{{model}}/load"), repository::load))
            .service(act(&format!("{repository}/models/{{model}}/unload"), repository::unload));
    }
    config.default_service(web::to(unknown_path));
}

/// A path that is read with GET or HEAD.
pub(crate) fn read<F, Args>(path: &str, handler: F) -> Resource
where
    F: actix_web::Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: actix_web::Responder + 'static,
{
    let verbs = guard::fn_guard(|context| guard::Get().check(context) || guard::Head().check(context));
    web::resource(path).route(web::route().guard(verbs).to(handler)).default_service(web::to(only_read))
}

/// A path that does something with POST.
fn act<F, Args>(path: &str, handler: F) -> Resource
where
    F: actix_web::Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: actix_web::Responder + 'static,
{
    web::resource(path).route(web::post().to(handler)).default_service(web::to(only_act))
}

async fn only_read(request: HttpRequest) -> Result<HttpResponse, Failure> {
    Err(Failure::wrong_verb(request.method().as_str(), request.path(), READ))
}

async fn only_act(request: HttpRequest) -> Result<HttpResponse, Failure> {
    Err(Failure::wrong_verb(request.method().as_str(), request.path(), ACT))
}

/// The answer where there is no route.
pub(crate) async fn unknown_path(request: HttpRequest) -> Result<HttpResponse, Failure> {
    Err(Failure::unknown_path(request.path()))
}
