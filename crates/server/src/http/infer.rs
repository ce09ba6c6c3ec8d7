//! `POST /v2/models/{model}[/versions/{version}]/infer`: headers, admission, body, submission, answer. It knows the order
//! of the steps and leaves each to its own file or to the runtime.

use actix_http::HttpMessage;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use insula_api::{ContentEncoding, RequestFormat};
use insula_core::{Code, Outcome};
use insula_runtime::admission::{Admitted, BodySink};
use insula_runtime::reply::Reply;
use insula_telemetry::WAY;
use tracing::Instrument;

use super::admission::{Admission, Earlier, admit};
use super::body::{self, IncomingBody};
use super::context::{InWork, RequestContext};
use super::failure::Failure;
use super::path::Target;
use super::reply;

/// Answers an inference request.
pub(crate) async fn infer(request: HttpRequest, payload: Payload, context: InWork) -> Result<HttpResponse, Failure> {
    let earlier = request.extensions_mut().remove::<Earlier>();
    let admission = match earlier {
        Some(Earlier::Admitted(admission)) => *admission,
        _ => match admit_here(&request, &context).await {
            Ok(admission) => admission,
            Err(failure) => {
                if failure.error.code() != Code::Unauthenticated {
                    body::skip(payload, &context, request.headers()).await;
                }
                return Err(failure);
            }
        },
    };
    let Admission { admitted, tally, format, encoding, declared } = admission;
    let answered = async {
        let body = read(payload, &context, &admitted, Layout { format, encoding, declared }).await?;
        submit(admitted, body, format, encoding).await
    };
    match answered.await {
        Ok(reply) => {
            context.set_timings(reply.timings());
            reply::answer(reply, tally, context.0)
        }
        Err(failure) => {
            context.set_outcome(Outcome::of(&failure.error));
            tally.fail(&failure.error);
            Err(failure)
        }
    }
}

/// How the body is laid out.
#[derive(Clone, Copy)]
struct Layout {
    format: RequestFormat,
    encoding: ContentEncoding,
    declared: Option<usize>,
}

async fn admit_here(request: &HttpRequest, context: &RequestContext) -> Result<Admission, Failure> {
    match Target::of(request.path()) {
        Target::Infer { model, version } => {
            let span = tracing::info_span!(target: WAY, "admit");
            admit(context, request.head(), &model, version.as_deref()).instrument(span).await
        }
        Target::Owned | Target::Other => Err(Failure::unknown_path(request.path())),
    }
}

/// Copies the body from the socket into the tenant's memory.
async fn read(
    payload: Payload,
    context: &RequestContext,
    admitted: &Admitted,
    layout: Layout,
) -> Result<BodySink, Failure> {
    let description_length = match (layout.format, layout.encoding) {
        (RequestFormat::Binary { description_length }, ContentEncoding::Identity) => Some(description_length),
        _ => None,
    };
    let span = tracing::info_span!(target: WAY, "body");
    async {
        let mut sink = admitted.body(layout.declared, description_length)?;
        let mut incoming = IncomingBody::begin(payload, context, Some(admitted.remaining()));
        while let Some(chunk) = incoming.next().await? {
            sink.write(&chunk)?;
        }
        Ok(sink)
    }
    .instrument(span)
    .await
}

async fn submit(
    admitted: Admitted,
    body: BodySink,
    format: RequestFormat,
    encoding: ContentEncoding,
) -> Result<Reply, Failure> {
    let limit = usize::try_from(admitted.request_bytes()).unwrap_or(usize::MAX);
    let decode = insula_api::decoder(format, encoding, admitted.signature().clone(), limit);
    let span = tracing::info_span!(target: WAY, "submit");
    Ok(admitted.submit(body, decode).instrument(span).await?)
}
