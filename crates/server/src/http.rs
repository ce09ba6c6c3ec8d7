//! The Open Inference Protocol over HTTP/1.1: the application, and the service that each worker makes of it. Everything
//! about sockets lies in `transport`, everything about tenants and models in the runtime.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, fn_factory, fn_service};
use actix_web::App;
use actix_web::dev::AppConfig;
use actix_web::web::ServiceConfig;
use futures_util::future::ready;

use crate::state::ServerState;
use crate::transport::stream::Stream;
use crate::transport::workers::MakeService;

pub(crate) mod admission;
pub(crate) mod answer_body;
pub(crate) mod body;
pub(crate) mod context;
pub(crate) mod error_response;
pub(crate) mod expect;
pub(crate) mod failed_keys;
pub(crate) mod failure;
pub(crate) mod front;
pub(crate) mod health;
pub(crate) mod infer;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod model_metadata;
pub(crate) mod path;
pub(crate) mod reply;
pub(crate) mod repository;
pub(crate) mod routes;
pub(crate) mod server_metadata;
pub(crate) mod uploads;

#[cfg(test)]
mod tests;

use expect::Expect;
use front::Front;

/// How much of an answer is encoded before it is handed to the socket.
const WRITE_BUFFER: usize = 64 << 10;

/// How a listener speaks HTTP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpOptions {
    /// The longest a connection's first head may take.
    pub(crate) header_timeout: Duration,
    /// The longest a connection may be idle.
    pub(crate) keep_alive: Duration,
    /// Whether a caller may close its side and still get its answer.
    pub(crate) half_closed: bool,
}

/// A service for one connection after the other.
pub(crate) type ConnectionService = Box<dyn Service<Stream, Response = (), Error = DispatchError, Future = Serving>>;

/// A connection being served.
pub(crate) type Serving = Pin<Box<dyn Future<Output = Result<(), DispatchError>>>>;

/// Makes the service of one worker: the routes that `configure` adds, behind a front.
pub(crate) fn make_service(
    state: Arc<ServerState>,
    options: HttpOptions,
    configure: fn(&mut ServiceConfig),
) -> MakeService<ConnectionService> {
    Box::pin(async move {
        let routes = App::new().configure(configure).into_factory().new_service(AppConfig::default()).await;
        let routes = routes.map_err(|()| "the routes could not be made".to_owned())?;
        let front = Rc::new(Front::new(routes, state.clone()));
        let service = HttpService::build()
            .keep_alive(KeepAlive::Timeout(options.keep_alive))
            .client_request_timeout(options.header_timeout)
            // the stream beneath ends connections by itself, with a lingering close where one is due
            .client_disconnect_timeout(Duration::ZERO)
            .h1_allow_half_closed(options.half_closed)
            .h1_write_buffer_size(WRITE_BUFFER)
            .on_connect_ext(|stream: &Stream, data| {
                data.insert(stream.connection().clone());
            })
            .expect(fn_factory(move || ready(Ok::<_, ()>(Expect(state.clone())))))
            .h1(fn_factory(move || ready(Ok::<_, ()>(front.clone()))));
        let service = service.new_service(()).await.map_err(|()| "the HTTP service could not be made".to_owned())?;
        let service = Rc::new(service);
        let connections: ConnectionService = Box::new(fn_service(move |stream: Stream| {
            let peer = stream.connection().peer();
            let serving: Serving = Box::pin(service.call((stream, Some(peer))));
            serving
        }));
        Ok(connections)
    })
}
