//! Posts encoded spans to a collector over plain HTTP. It blocks, so only the exporter's own thread may call it; it follows
//! no redirects, asks no proxy and reads a bounded answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use parking_lot::Mutex;

/// The most bytes of an answer that are read.
const ANSWER_MAX: u64 = 1 << 20;

/// The client, and why its last post failed: the exporter above it keeps that to itself.
#[derive(Debug, Clone)]
pub(super) struct CollectorClient {
    agent: ureq::Agent,
    last_failure: Arc<Mutex<Option<String>>>,
}

impl CollectorClient {
    /// A client whose posts end within `timeout`, answered or not.
    pub(super) fn new(timeout: Duration) -> CollectorClient {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build();
        CollectorClient { agent: config.new_agent(), last_failure: Arc::default() }
    }

    /// Why the last post failed, if it did; asked once.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.last_failure.lock().take()
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (head, body) = request.into_parts();
        let answer = self.agent.run(Request::from_parts(head, &body[..]))?;
        let (head, mut body) = answer.into_parts();
        let body = body.with_config().limit(ANSWER_MAX).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.post(request);
        *self.last_failure.lock() = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered {}", answer.status())),
            Err(error) => Some(error.to_string()),
        };
        Ok(answer?)
    }
}
