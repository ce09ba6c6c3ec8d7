//! One request from its complete head to the last byte of its answer: its id, its span, its connection, and what the
//! access log will say. It is made before routing, reached by handlers through the request, and dropped with the answer's
//! body, which is when the request ends. It answers nothing.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use actix_http::header::{HeaderMap, HeaderName};
use actix_http::{HttpMessage, Payload, Request};
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::{Ready, ready};
use insula_core::{Error, ModelName, Nanos, Outcome, RequestId, TenantId};
use insula_runtime::reply::Timings;
use insula_telemetry::{AccessRecord, RemoteParent, WAY};
use tracing::Span;

use super::failure::Failure;
use crate::state::ServerState;
use crate::transport::connection::{Connection, RequestInWork};

/// The header that carries a request's id, both ways.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request in work.
pub(crate) struct RequestContext {
    state: Arc<ServerState>,
    id: RequestId,
    connection: Arc<Connection>,
    work: RequestInWork,
    span: Span,
    time: SystemTime,
    begun: Nanos,
    noted: RefCell<Noted>,
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
}

/// What becomes known of a request on its way.
#[derive(Debug, Default)]
struct Noted {
    tenant: Option<TenantId>,
    model: Option<ModelName>,
    status: Option<u16>,
    outcome: Option<Outcome>,
    timings: Timings,
}

/// What a request carries so that the front and its handlers find the same context.
#[derive(Clone)]
pub(crate) struct InWork(pub(crate) Rc<RequestContext>);

impl RequestContext {
    /// The context of `request`: the one that an earlier step made, or a new one. `None` if the connection is not one of
    /// our streams, which cannot be.
    pub(crate) fn of(request: &Request, state: &Arc<ServerState>) -> Option<Rc<RequestContext>> {
        if let Some(made) = request.extensions().get::<InWork>() {
            return Some(made.0.clone());
        }
        let connection = request.conn_data::<Arc<Connection>>()?.clone();
        let headers = request.headers();
        let announces_body = has_payload(request) && headers.get("content-length").is_none_or(|length| length != "0");
        let id = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok());
        let id = id.map_or_else(RequestId::generate, RequestId::from_caller);
        let context = Rc::new(RequestContext {
            span: begin_span(request, &id),
            work: RequestInWork::begin(&connection, announces_body),
            state: state.clone(),
            id,
            connection,
            time: SystemTime::now(),
            begun: state.now(),
            noted: RefCell::default(),
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
        });
        request.extensions_mut().insert(InWork(context.clone()));
        Some(context)
    }

    /// The server's state.
    pub(crate) fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// The request's id.
    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// The address of the caller.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    /// The connection.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How far the body has been taken.
    pub(crate) fn work(&self) -> &RequestInWork {
        &self.work
    }

    /// The span of the whole request.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Notes whose request it is.
    pub(crate) fn set_tenant(&self, tenant: &TenantId) {
        self.span.record("tenant", tenant.as_str());
        self.noted.borrow_mut().tenant = Some(tenant.clone());
    }

    /// Notes the model that the caller named, if it is a possible name.
    pub(crate) fn set_model(&self, model: &str) {
        if let Ok(model) = ModelName::new(model) {
            self.span.record("model", model.as_str());
            self.noted.borrow_mut().model = Some(model);
        }
    }

    /// Notes the answer's status, and the outcome that goes with it unless one is known already.
    pub(crate) fn set_answer(&self, status: u16, outcome: Outcome) {
        self.span.record("status", status);
        let mut noted = self.noted.borrow_mut();
        noted.status = Some(status);
        noted.outcome.get_or_insert(outcome);
    }

    /// Notes how the request ended, whatever its answer's status says.
    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        self.noted.borrow_mut().outcome = Some(outcome);
    }

    /// Notes what the way of an inference took.
    pub(crate) fn set_timings(&self, timings: Timings) {
        self.noted.borrow_mut().timings = timings;
    }

    /// Counts bytes of the body as received.
    pub(crate) fn count_in(&self, bytes: usize) {
        self.bytes_in.set(self.bytes_in.get().saturating_add(bytes as u64));
    }

    /// Counts bytes of the answer's body.
    pub(crate) fn count_out(&self, bytes: usize) {
        self.bytes_out.set(self.bytes_out.get().saturating_add(bytes as u64));
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        let Some(log) = self.state.access_log() else { return };
        let noted = self.noted.take();
        let outcome = noted.outcome.unwrap_or(Outcome::Cancelled);
        if noted.tenant.is_none() && outcome == Outcome::Success {
            // a probe: whoever watches the server every second should not fill its log
            return;
        }
        log.record(AccessRecord {
            time: self.time,
            request_id: self.id.clone(),
            tenant: noted.tenant,
            model: noted.model,
            status: noted.status,
            outcome,
            bytes_in: self.bytes_in.get(),
            bytes_out: self.bytes_out.get(),
            queue: noted.timings.queue,
            device: noted.timings.device,
            total: self.state.now().since(self.begun),
            remote: Some(self.connection.peer()),
        });
    }
}

impl FromRequest for InWork {
    type Error = Failure;
    type Future = Ready<Result<InWork, Failure>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let context = request.extensions().get::<InWork>().cloned();
        ready(context.ok_or_else(|| Error::internal("the request was lost", "a handler without a context").into()))
    }
}

impl std::ops::Deref for InWork {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.0
    }
}

fn has_payload(request: &Request) -> bool {
    let headers: &HeaderMap = request.headers();
    headers.contains_key("content-length") || headers.contains_key("transfer-encoding")
}

fn begin_span(request: &Request, id: &RequestId) -> Span {
    let span = tracing::info_span!(
        target: WAY,
        "request",
        otel.kind = "server",
        verb = request.method().as_str(),
        request_id = %id,
        tenant = tracing::field::Empty,
        model = tracing::field::Empty,
        status = tracing::field::Empty,
    );
    if !span.is_disabled() {
        let values = |name: &str| request.headers().get_all(name).map(|value| value.as_bytes()).collect::<Vec<_>>();
        if let Some(parent) = RemoteParent::from_headers(values("traceparent"), values("tracestate")) {
            parent.attach(&span);
        }
    }
    span
}
