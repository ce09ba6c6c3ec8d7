//! The model repository extension: the index of a tenant's models, loading one (with files in the request or from where it
//! came) and unloading it. Each tenant sees and changes only its own. Loading itself is the runtime's.

use actix_http::HttpMessage;
use actix_http::header::{CONTENT_ENCODING, HeaderMap};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use insula_api::wire::{
    RepositoryIndexEntry, RepositoryIndexRequest, RepositoryLoad, RepositoryState, RepositoryUnload,
    SMALL_DOCUMENT_BYTES, small_document,
};
use insula_core::{Code, Error};
use insula_runtime::tenant::TenantHandle;
use insula_runtime::tenant::models::ModelState;

use super::admission::{Earlier, declared_length};
use super::body::IncomingBody;
use super::context::{InWork, RequestContext};
use super::failure::Failure;
use super::json;
use super::key::authenticate;
use super::path::decode;

/// A list of the tenant's models with their states.
pub(crate) async fn index(request: HttpRequest, payload: Payload, context: InWork) -> Result<HttpResponse, Failure> {
    let tenant = caller(&request, &context).await?;
    let body = small_body(&request, payload, &context).await?;
    let wanted: RepositoryIndexRequest = small_document(&body)?;
    let models = tenant.models().into_iter().filter(|model| model.ready || !wanted.ready);
    Ok(json::ok(&models.map(entry).collect::<Vec<_>>()))
}

/// Loads a model; answers when it serves or has been refused. Until then, and if it is refused, the old one serves.
pub(crate) async fn load(request: HttpRequest, payload: Payload, context: InWork) -> Result<HttpResponse, Failure> {
    let tenant = caller(&request, &context).await?;
    let model = named(&request, &context);
    let _loading = context.state().uploads().begin(tenant.id())?;
    let load = upload(&request, payload, &context).await?;
    let path =
        |file: insula_api::wire::RepositoryFile| (format!("file:{}/{}", file.version, file.name), file.bytes.into());
    let files: Vec<_> = load.files.into_iter().map(path).collect();
    tenant.load_model(&model, (!files.is_empty()).then_some(files)).await?;
    Ok(HttpResponse::Ok().finish())
}

/// Unloads a model; requests in flight are answered.
pub(crate) async fn unload(request: HttpRequest, payload: Payload, context: InWork) -> Result<HttpResponse, Failure> {
    let tenant = caller(&request, &context).await?;
    let model = named(&request, &context);
    let body = small_body(&request, payload, &context).await?;
    let _: RepositoryUnload = small_document(&body)?;
    tenant.unload_model(&model).await?;
    Ok(HttpResponse::Ok().finish())
}

async fn caller(request: &HttpRequest, context: &RequestContext) -> Result<TenantHandle, Failure> {
    let earlier = request.extensions_mut().remove::<Earlier>();
    let tenant = match earlier {
        Some(Earlier::Known(tenant)) => tenant,
        _ => authenticate(context, request.headers()).await?,
    };
    tenant.state().check_serving(tenant.id())?;
    Ok(tenant)
}

fn named(request: &HttpRequest, context: &RequestContext) -> String {
    let name = decode(request.match_info().get("model").unwrap_or_default()).into_owned();
    context.set_model(&name);
    name
}

fn entry(model: ModelState) -> RepositoryIndexEntry {
    RepositoryIndexEntry {
        name: model.name.to_string(),
        version: model.version.map(|version| version.to_string()),
        state: if model.ready { RepositoryState::Ready } else { RepositoryState::Unavailable },
        reason: model.reason,
    }
}

async fn small_body(request: &HttpRequest, payload: Payload, context: &RequestContext) -> Result<Vec<u8>, Failure> {
    gather(request.headers(), payload, context, SMALL_DOCUMENT_BYTES as u64, "this document may have").await
}

/// Reads a load's body and takes it apart, which for a large one happens off the thread that serves other requests.
async fn upload(request: &HttpRequest, payload: Payload, context: &RequestContext) -> Result<RepositoryLoad, Failure> {
    let state = context.state();
    let _turn = state.uploads().turn().await?;
    let limit = state.limits().load_bytes;
    let body = gather(request.headers(), payload, context, limit, "a load may have (requests.load_bytes)").await?;
    let parsed = tokio::task::spawn_blocking(move || RepositoryLoad::parse(&body)).await;
    let parsed = parsed.map_err(|error| Error::internal("the load could not be read", error.to_string()))?;
    Ok(parsed?)
}

/// The whole body, if it has at most `limit` bytes; `what` says in the refusal what may have so many.
async fn gather(
    headers: &HeaderMap,
    payload: Payload,
    context: &RequestContext,
    limit: u64,
    what: &str,
) -> Result<Vec<u8>, Failure> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let error = Error::new(Code::Unsupported, "a body of this path may not be compressed");
        return Err(Failure::wrong_encoding(error, "identity"));
    }
    let too_large =
        |length: u64| Error::new(Code::PayloadTooLarge, format!("the body has {length} bytes or more, {what} {limit}"));
    let declared = declared_length(headers)?;
    if let Some(length) = declared.filter(|length| *length > limit) {
        return Err(too_large(length).into());
    }
    let announced = declared.and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(announced.unwrap_or_default());
    let mut incoming = IncomingBody::begin(payload, context, None);
    while let Some(chunk) = incoming.next().await? {
        let length = (body.len() + chunk.len()) as u64;
        if length > limit {
            return Err(too_large(length).into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
