//! What the server is started with: defaults, then `insula.toml`, then `INSULA_*`, then flags; each later one wins. All
//! faults come out together, each with its place. Loading reads the file and the environment and nothing else;
//! `check` reads the tenant documents too. The command line makes [`Overrides`] and calls [`Settings::load`].

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use insula_telemetry::{AccessLogTarget, LogFormat};

mod check;
mod environment;
mod fault;
mod file;
mod key;
mod overrides;
mod value;

pub use check::CheckReport;
pub use fault::{SettingFault, SettingsFaults};
pub use overrides::Overrides;
pub use value::MemoryLimit;

use fault::Faults;

/// The file that is read when none is named, if it is there.
pub const DEFAULT_FILE: &str = "insula.toml";

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Where callers connect by HTTP.
    pub http: SocketAddr,
    /// Where metrics and probes are served.
    pub admin: SocketAddr,
    /// The folder of tenant documents.
    pub tenants: PathBuf,
    /// The shared catalog of models.
    pub models: PathBuf,
    /// Where the server keeps what it makes: the admin token, private models.
    pub state: PathBuf,
    /// What runs the models.
    pub device: DeviceChoice,
    /// Workers that run batches; `None`: one a NUMA node.
    pub workers: Option<usize>,
    /// Threads that serve HTTP; `None`: as many as CPUs may be used, at most 16.
    pub http_workers: Option<usize>,
    /// What domains, weights and plans may take together.
    pub memory: MemoryLimit,
    /// Connections served at once.
    pub max_connections: usize,
    /// From the signal to stop until no connection is accepted any more.
    pub drain_delay: Duration,
    /// How long requests may take to end after that.
    pub drain_timeout: Duration,
    /// How long a request may be held back so that more share its batch; zero never holds one back.
    pub max_queue_delay: Duration,
    /// Whether a caller may end its side of a connection and still get its answer.
    pub half_closed: bool,
    /// How long one request may take of us, and how much.
    pub requests: RequestLimits,
    /// What is logged.
    pub log: LogSettings,
    /// Where spans are sent.
    pub otlp: OtlpSettings,
    /// Words for whoever starts the server about things that look like mistakes and are none for certain.
    pub notes: Vec<String>,
}

/// What runs the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The best there is.
    Auto,
    /// The CPU.
    Cpu,
}

/// Bounds of one request's way through HTTP. What belongs to a tenant stands in its quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// The longest a request's head may take to arrive.
    pub header_timeout: Duration,
    /// The longest a connection may stay open without a request.
    pub keep_alive: Duration,
    /// The longest time without a byte of the body.
    pub body_idle: Duration,
    /// The longest a body may take to arrive.
    pub body_total: Duration,
    /// The longest time without a byte of the answer taken.
    pub response_stall: Duration,
    /// The longest an answer may take to be taken once the caller has stopped taking it at once.
    pub response_total: Duration,
    /// Bytes of a request that loads a model.
    pub load_bytes: u64,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// The least severe level, and those of parts of the program: `info,insula_runtime=debug`.
    pub level: String,
    /// How lines look.
    pub format: LogFormat,
    /// Where each request gets a line; `None`: nowhere.
    pub access: Option<AccessLogTarget>,
}

/// Where spans are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpSettings {
    /// The collector's OTLP/HTTP address, such as `http://127.0.0.1:4318`; `None`: spans are not sent.
    pub endpoint: Option<String>,
    /// The longest a post to the collector may take.
    pub timeout: Duration,
    /// The share of requests whose spans are sent, 0 to 1, where the caller has not decided.
    pub sample_ratio: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            file: None,
            http: SocketAddr::from(([127, 0, 0, 1], 8000)),
            admin: SocketAddr::from(([127, 0, 0, 1], 8002)),
            tenants: "tenants".into(),
            models: "examples/models".into(),
            state: "state".into(),
            device: DeviceChoice::Auto,
            workers: None,
            http_workers: None,
            memory: MemoryLimit::Percent(75),
            max_connections: 10_000,
            drain_delay: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            max_queue_delay: Duration::ZERO,
            half_closed: false,
            requests: RequestLimits::default(),
            // what callers send that is no HTTP is answered and counted; as errors in the log it would be theirs to fill
            log: LogSettings { level: "info,actix_http=off".to_owned(), format: LogFormat::Text, access: None },
            otlp: OtlpSettings { endpoint: None, timeout: Duration::from_secs(5), sample_ratio: 0.01 },
            notes: Vec::new(),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            header_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(75),
            body_idle: Duration::from_secs(10),
            body_total: Duration::from_secs(60),
            response_stall: Duration::from_secs(10),
            response_total: Duration::from_secs(120),
            load_bytes: 256 << 20,
        }
    }
}

impl Settings {
    /// Puts the settings together from the defaults, the file, this process's environment and `overrides`. Fails with
    /// all faults of all sources.
    pub fn load(overrides: &Overrides) -> Result<Settings, SettingsFaults> {
        Settings::from_sources(std::env::vars_os(), overrides)
    }

    /// [`Settings::load`] with the environment given as `variables`.
    pub fn from_sources(
        variables: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
        overrides: &Overrides,
    ) -> Result<Settings, SettingsFaults> {
        let mut faults = Faults::default();
        let mut settings = Settings::default();
        let environment = environment::read(variables, &mut faults);
        let from_file = match overrides.config.clone().or(environment.config) {
            Some(path) => file::read(&path, true, &mut faults),
            None => file::read(DEFAULT_FILE.as_ref(), false, &mut faults),
        };
        settings.file = from_file.path;
        settings.notes = environment.notes;
        let given = from_file.given.into_iter().chain(environment.given).chain(overrides.given(&mut faults));
        for given in given {
            given.apply(&mut settings, &mut faults);
        }
        faults.finish().map(|()| settings)
    }

    /// Whether callers on other machines can reach the HTTP port.
    pub fn is_public(&self) -> bool {
        !self.http.ip().is_loopback()
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceChoice::Auto => "auto",
            DeviceChoice::Cpu => "cpu",
        })
    }
}
