//! `GET /v2/models/{model}[/versions/{version}]` and its `/ready`: inputs, outputs and versions of a tenant's model. A model
//! of another tenant is as unknown as one that does not exist.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use insula_api::wire::{ModelMetadata, ModelReadyBody};
use insula_runtime::model::ServedModel;

use super::context::{InWork, RequestContext};
use super::failure::Failure;
use super::json;
use super::key::authenticate;
use super::path::decode;

/// What the models were made for, as the protocol's clients know it.
const PLATFORM: &str = "onnx_onnxv1";

/// The model's inputs, outputs and ready versions.
pub(crate) async fn metadata(request: HttpRequest, context: InWork) -> Result<HttpResponse, Failure> {
    let (name, model) = find(&request, &context).await?;
    let versions = model.versions.iter().map(ToString::to_string).collect();
    Ok(json::ok(&ModelMetadata::new(name, versions, PLATFORM.to_owned(), model.loaded.signature())))
}

/// Whether the model takes requests.
pub(crate) async fn ready(request: HttpRequest, context: InWork) -> Result<HttpResponse, Failure> {
    let (name, _) = find(&request, &context).await?;
    Ok(json::ok(&ModelReadyBody { name, ready: true }))
}

async fn find(request: &HttpRequest, context: &RequestContext) -> Result<(String, Arc<ServedModel>), Failure> {
    let tenant = authenticate(context, request.headers()).await?;
    tenant.state().check_serving(tenant.id())?;
    let matched = request.match_info();
    let name = decode(matched.get("model").unwrap_or_default());
    let version = matched.get("version").map(decode);
    context.set_model(&name);
    let model = tenant.model(&name, version.as_deref())?;
    Ok((name.into_owned(), model))
}
