//! The questions that a request's headers answer: whose is it, which model, how is its body laid out and packed, may it come
//! in. Asked before the first byte of the body: by the expect service before `100 Continue` is sent, else by the handler
//! before it reads. It reads no body and writes no answer.

use actix_http::RequestHead;
use actix_http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};
use insula_api::{ContentEncoding, INFERENCE_HEADER_CONTENT_LENGTH, RequestFormat};
use insula_core::{Error, Result};
use insula_runtime::admission::Admitted;
use insula_runtime::tenant::TenantHandle;
use insula_telemetry::PendingRequest;

use super::context::RequestContext;
use super::failure::Failure;
use super::key::authenticate;

/// The encodings that an inference's body may have.
const ENCODINGS: &str = "gzip, deflate";

/// An inference that may read its body.
pub(crate) struct Admission {
    pub(crate) admitted: Admitted,
    pub(crate) tally: PendingRequest,
    pub(crate) format: RequestFormat,
    pub(crate) encoding: ContentEncoding,
    /// The body's length as announced; `None`: it comes in chunks.
    pub(crate) declared: Option<usize>,
}

/// What an earlier step found out, left with the request for its handler.
pub(crate) enum Earlier {
    /// An inference was admitted.
    Admitted(Box<Admission>),
    /// The caller's tenant is known.
    Known(TenantHandle),
}

/// Admits the inference of `model` that `head` announces. Whatever refuses it is counted as its outcome.
pub(crate) async fn admit(
    context: &RequestContext,
    head: &RequestHead,
    model: &str,
    version: Option<&str>,
) -> Result<Admission, Failure> {
    context.set_model(model);
    let headers = head.headers();
    let tenant = match authenticate(context, headers).await {
        Ok(tenant) => tenant,
        Err(error) => {
            // a server that is only starting counts nobody: its directory is not there yet
            if let Ok(directory) = context.state().directory() {
                directory.unknown().fail(&error);
            }
            return Err(error.into());
        }
    };
    let tally = tenant.tally(model);
    match admit_known(headers, &tenant, model, version) {
        Ok((admitted, body)) => {
            let Body { format, encoding, declared } = body;
            Ok(Admission { admitted, tally, format, encoding, declared })
        }
        Err(failure) => {
            tally.fail(&failure.error);
            Err(failure)
        }
    }
}

/// What headers say of a body.
struct Body {
    format: RequestFormat,
    encoding: ContentEncoding,
    declared: Option<usize>,
}

fn admit_known(
    headers: &HeaderMap,
    tenant: &TenantHandle,
    model: &str,
    version: Option<&str>,
) -> Result<(Admitted, Body), Failure> {
    let declared = declared_length(headers)?;
    let encoding = match text(headers, CONTENT_ENCODING.as_str())? {
        Some(encoding) => {
            ContentEncoding::parse(encoding).map_err(|error| Failure::wrong_encoding(error, ENCODINGS))?
        }
        None => ContentEncoding::Identity,
    };
    let length = declared.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let unpacked = length.filter(|_| encoding == ContentEncoding::Identity);
    let format = RequestFormat::from_headers(
        text(headers, CONTENT_TYPE.as_str())?,
        text(headers, INFERENCE_HEADER_CONTENT_LENGTH)?,
        unpacked,
    )?;
    let admitted = tenant.admit(model, version, declared)?;
    Ok((admitted, Body { format, encoding, declared: length }))
}

/// The length that the headers announce; `None` if the body comes in chunks.
pub(crate) fn declared_length(headers: &HeaderMap) -> Result<Option<u64>> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return Ok(None);
    }
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(Some(0)) };
    let length = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    length.map(Some).ok_or_else(|| Error::invalid("the header `Content-Length` is not a number of bytes"))
}

/// The text of the header `name`. Fails when it has bytes that no header's text has.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value
        .to_str()
        .map(Some)
        .map_err(|_| Error::invalid(format!("the header `{name}` has bytes that are not visible ASCII")))
}
