//! Asks a server over HTTP, with a key, within a time. It knows no path and no document; what cannot be reached or read is
//! a [`Failure`] with a hint. Commands that speak to a server use it.

use std::io;
use std::time::Duration;

use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body, Proxy};

use crate::failure::Failure;
use crate::refusal;
use crate::server_url::ServerUrl;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A server, and how to speak to it.
pub struct HttpClient {
    agent: Agent,
    server: ServerUrl,
    authorization: Option<String>,
    timeout: Duration,
}

/// What a server answered.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

impl HttpClient {
    /// A client of `server` that presents `key` and waits for `timeout` at most. A proxy of the environment
    /// (`HTTP_PROXY`) is used for other machines only.
    pub fn new(server: ServerUrl, key: Option<&str>, timeout: Duration) -> HttpClient {
        let proxy = if server.is_loopback() { None } else { Proxy::try_from_env() };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(timeout))
            .user_agent(concat!("insula/", env!("CARGO_PKG_VERSION")))
            .build();
        let authorization = key.map(|key| format!("Bearer {key}"));
        HttpClient { agent: Agent::new_with_config(config), server, authorization, timeout }
    }

    /// GETs `path`. A refusal is a failure.
    pub fn get(&self, path: &str) -> Result<Answer, Failure> {
        let mut request = self.agent.get(self.server.join(path));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.read(request.call())
    }

    /// POSTs `body` to `path` with `headers`. A refusal is a failure.
    pub fn post(&self, path: &str, headers: &[(&str, String)], body: &[u8]) -> Result<Answer, Failure> {
        let mut request = self.agent.post(self.server.join(path));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.read(request.send(body))
    }

    fn read(&self, response: Result<Response<Body>, ureq::Error>) -> Result<Answer, Failure> {
        let response = response.map_err(|error| self.failure(&error))?;
        let (head, mut body) = response.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(|error| self.failure(&error))?;
        let answer = Answer { status: head.status.as_u16(), headers: head.headers, body };
        refusal::accept(answer, self.authorization.is_some())
    }

    fn failure(&self, error: &ureq::Error) -> Failure {
        let server = &self.server;
        match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Failure::unreachable(format_args!("no server listens at {server}"))
                    .hint("start one with `insula serve`, or name another with `--server URL` or `INSULA_SERVER`")
            }
            ureq::Error::HostNotFound => Failure::unreachable(format_args!("the host of {server} is not known"))
                .hint("check the address given with `--server` or `INSULA_SERVER`"),
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                Failure::unreachable(format_args!("{server} took no connection within {} s", CONNECT.as_secs()))
            }
            ureq::Error::Timeout(_) => {
                Failure::unreachable(format_args!("{server} gave no answer within {} s", self.timeout.as_secs_f64()))
                    .hint("wait longer with `--timeout SECONDS`")
            }
            ureq::Error::BodyExceedsLimit(limit) => Failure::new(format_args!(
                "the answer of {server} is longer than {} MiB, the most that is read",
                limit >> 20
            )),
            ureq::Error::Protocol(error) => {
                Failure::unreachable(format_args!("what listens at {server} speaks no HTTP: {error}"))
                    .hint("the port for HTTP stands in the line that `insula serve` prints when it is ready")
            }
            error => Failure::unreachable(format_args!("{server} cannot be asked: {error}")),
        }
    }
}

impl Answer {
    /// The text of header `name`; `None` when it is absent or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
