//! The body of an answer with the request that it ends: when the body has been written, or nobody will read it, the
//! request's context goes with it. It counts what passes and changes nothing. The front makes it.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::body::{BodySize, BoxBody, MessageBody};
use bytes::Bytes;

use super::context::RequestContext;

type BoxError = Box<dyn std::error::Error>;

/// A body that holds its request.
pub(crate) struct AnswerBody {
    body: BoxBody,
    context: Option<Rc<RequestContext>>,
}

impl AnswerBody {
    /// The answer `body` of the request of `context`.
    pub(crate) fn new(body: BoxBody, context: Rc<RequestContext>) -> AnswerBody {
        AnswerBody { body, context: Some(context) }
    }

    /// No body, of no request.
    pub(crate) fn empty() -> AnswerBody {
        AnswerBody { body: BoxBody::new(()), context: None }
    }
}

impl MessageBody for AnswerBody {
    type Error = BoxError;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_next(cx);
        if let (Poll::Ready(Some(Ok(bytes))), Some(context)) = (&polled, &self.context) {
            context.count_out(bytes.len());
        }
        polled
    }
}
