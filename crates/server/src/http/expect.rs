//! What happens on `Expect: 100-continue`: the request is admitted or refused by its headers before `100 Continue` goes
//! out, so that a refused caller never sends its body. What is found out travels with the request. It reads no body.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_http::body::BoxBody;
use actix_http::{HttpMessage, Request, Response};
use actix_service::Service;
use tracing::Instrument;

use super::admission::{Earlier, admit};
use super::context::RequestContext;
use super::error_response;
use super::failure::Failure;
use super::front::finish;
use super::key::authenticate;
use super::path::Target;
use crate::state::ServerState;

/// The service that is asked before `100 Continue`.
pub(crate) struct Expect(pub(crate) Arc<ServerState>);

/// The answer to a request that is refused by its headers.
#[derive(Debug)]
pub(crate) struct Refused(Response<BoxBody>);

impl From<Refused> for Response<BoxBody> {
    fn from(refused: Refused) -> Response<BoxBody> {
        refused.0
    }
}

impl Service<Request> for Expect {
    type Response = Request;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Request, Refused>>>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&self, request: Request) -> Self::Future {
        let Some(context) = RequestContext::of(&request, &self.0) else {
            return Box::pin(async { Ok(request) });
        };
        let span = context.span().clone();
        Box::pin(decide(request, context).instrument(span))
    }
}

async fn decide(request: Request, context: Rc<RequestContext>) -> Result<Request, Refused> {
    if context.connection().over_limit().is_some() {
        // the front refuses it; without a body it needs no 100
        return Ok(request);
    }
    match look(&request, &context).await {
        Ok(Some(earlier)) => {
            request.extensions_mut().insert(earlier);
            Ok(request)
        }
        Ok(None) => Ok(request),
        Err(failure) => {
            let answer = error_response::answer(&failure, context.id());
            let answer = finish(answer, &context, Some(&failure.error));
            Err(Refused(answer.map_body(|_, body| BoxBody::new(body))))
        }
    }
}

async fn look(request: &Request, context: &RequestContext) -> Result<Option<Earlier>, Failure> {
    Ok(match Target::of(request.path()) {
        Target::Infer { model, version } => {
            let admission = admit(context, request.head(), &model, version.as_deref()).await?;
            Some(Earlier::Admitted(Box::new(admission)))
        }
        Target::Owned => Some(Earlier::Known(authenticate(context, request.headers()).await?)),
        Target::Other => None,
    })
}
