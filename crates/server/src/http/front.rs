//! What stands before every route: makes the request's context, refuses what comes over the limit of connections, catches
//! panics, turns failures into answers, and puts on each answer what every answer has. It knows no route. Each worker has
//! one around its own instance of the application.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_http::body::BoxBody;
use actix_http::header::HeaderValue;
use actix_http::{ConnectionType, Request, Response};
use actix_service::Service;
use actix_web::dev::ServiceResponse;
use futures_util::FutureExt;
use insula_core::{Error, Outcome, Refusal};
use tracing::Instrument;

use super::answer_body::AnswerBody;
use super::context::{RequestContext, X_REQUEST_ID};
use super::error_response;
use super::failure::Failure;
use crate::state::ServerState;

/// The service before the application `inner`.
pub(crate) struct Front<S> {
    inner: S,
    state: Arc<ServerState>,
}

impl<S> Front<S> {
    /// A front for `inner`.
    pub(crate) fn new(inner: S, state: Arc<ServerState>) -> Front<S> {
        Front { inner, state }
    }
}

impl<S> Service<Request> for Front<S>
where
    S: Service<Request, Response = ServiceResponse<BoxBody>, Error = actix_web::Error>,
    S::Future: 'static,
{
    type Response = Response<AnswerBody>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, std::convert::Infallible>>>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&self, request: Request) -> Self::Future {
        let Some(context) = RequestContext::of(&request, &self.state) else {
            return Box::pin(async { Ok(Response::internal_server_error().map_body(|_, _| AnswerBody::empty())) });
        };
        if let Some(limit) = context.connection().over_limit() {
            let refused = over_limit(limit);
            return Box::pin(async move {
                Ok(finish(error_response::answer(&refused, context.id()), &context, Some(&refused.error)))
            });
        }
        let served = AssertUnwindSafe(self.inner.call(request)).catch_unwind();
        let span = context.span().clone();
        Box::pin(answer(served, context).instrument(span))
    }
}

async fn answer<F>(served: F, context: Rc<RequestContext>) -> Result<Response<AnswerBody>, std::convert::Infallible>
where
    F: Future<Output = std::thread::Result<Result<ServiceResponse<BoxBody>, actix_web::Error>>>,
{
    let failed =
        |failure: &Failure| finish(error_response::answer(failure, context.id()), &context, Some(&failure.error));
    Ok(match served.await {
        Ok(Ok(response)) => match response.response().error().map(as_failure) {
            Some(failure) => failed(&failure),
            None => {
                let (_, response) = response.into_parts();
                finish(Response::from(response), &context, None)
            }
        },
        Ok(Err(error)) => failed(&as_failure(&error)),
        Err(panic) => failed(&panicked(panic.as_ref()).into()),
    })
}

/// What a handler returned, as a failure of ours.
fn as_failure(error: &actix_web::Error) -> Failure {
    match error.as_error::<Failure>() {
        Some(failure) => Failure { error: failure.error.clone(), status: failure.status, hint: failure.hint.clone() },
        None => Error::internal("the request failed because of a fault of the server", error.to_string()).into(),
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let detail = format!("a handler panicked: {}", text.unwrap_or("without a message"));
    Error::internal("the request failed because of a fault of the server", detail)
}

fn over_limit(limit: usize) -> Failure {
    let (value, used) = (limit as f64, limit as f64);
    let (window, retry_after) = (Duration::ZERO, Duration::from_secs(1));
    let refusal = Refusal { limit: "server_connections", value, used, window, retry_after };
    let message = format!("the server has all of its {limit} connections open (max_connections): try again");
    Error::unavailable(message, refusal).into()
}

/// Puts the request's id on the answer, says whether the connection ends with it, and ties the request's end to the body's.
pub(crate) fn finish(
    mut response: Response<BoxBody>,
    context: &Rc<RequestContext>,
    error: Option<&Error>,
) -> Response<AnswerBody> {
    if let Ok(id) = HeaderValue::try_from(context.id().to_string()) {
        response.headers_mut().insert(X_REQUEST_ID, id);
    }
    let closes = context.state().closes_connections()
        || context.connection().over_limit().is_some()
        || context.work().has_unread_body();
    if closes {
        response.head_mut().set_connection_type(ConnectionType::Close);
    }
    context.set_answer(response.status().as_u16(), error.map_or(Outcome::Success, Outcome::of));
    if let Some(error) = error.filter(|error| Outcome::of(error) == Outcome::Failed) {
        tracing::error!(request_id = %context.id(), %error, detail = error.detail().unwrap_or("-"), "a request failed");
    }
    response.map_body(|_, body| AnswerBody::new(body, context.clone()))
}
