//! Starting a server, as a list of small steps: folders, documents, listeners, house, tenants. A step that fails stops the
//! start with a message that says what to do; a tenant or a model that fails is reported and takes down nobody else.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use insula_core::{Clock, Code, Error, Result, SystemClock};
use insula_runtime::runtime::{Runtime, TenantReport};
use insula_store::{TenantDocument, TenantsFolder};
use insula_telemetry::{AccessLog, AccessLogSettings, Metrics};

use crate::admin;
use crate::cores::CorePlan;
use crate::host::Host;
use crate::house;
use crate::http::{self, HttpOptions, routes};
use crate::report::StartReport;
use crate::settings::Settings;
use crate::state::{ServerState, StateParts};
use crate::transport::listener::Listener;
use crate::transport::listening::Listening;
use crate::transport::stream::StreamLimits;
use crate::transport::workers::Workers;

/// Connections that the admin port serves at once.
const ADMIN_CONNECTIONS: usize = 128;

/// A running server.
#[derive(Debug)]
pub struct Server {
    pub(crate) settings: Settings,
    pub(crate) state: Arc<ServerState>,
    pub(crate) http: Listening,
    pub(crate) admin: Listening,
    report: StartReport,
}

/// Where a server listens, with real ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Callers' HTTP.
    pub http: SocketAddr,
    /// Metrics and probes.
    pub admin: SocketAddr,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http={} grpc=- admin={}", self.http, self.admin)
    }
}

impl Server {
    /// Starts a server and returns when its tenants are there. Fails if nothing could be served.
    pub fn start(settings: Settings) -> Result<Server> {
        let (metrics, clock) = Server::counters();
        Server::start_with(settings, metrics, clock)
    }

    /// What a server counts with, and by which time.
    pub(crate) fn counters() -> (Metrics, Arc<dyn Clock>) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        (Metrics::new(env!("CARGO_PKG_VERSION"), clock.clone()), clock)
    }

    pub(crate) fn start_with(settings: Settings, metrics: Metrics, clock: Arc<dyn Clock>) -> Result<Server> {
        prepare_folders(&settings)?;
        let folder = read_documents(&settings)?;
        let host = Host::read();
        let cores = CorePlan::new(host, &settings);
        let memory = settings.memory.of(host.memory);
        let state = make_state(&settings, metrics.clone(), clock.clone())?;
        let http = listen_http(&settings, &cores, &state)?;
        let admin = listen_admin(&settings, &state)?;
        let house = house::start(&settings, memory, metrics, clock)?;
        let tenants = add_tenants(&house, &folder);
        state.set_runtime(house);
        state.begin_serving();
        let addresses = Addresses { http: http.address(), admin: admin.address() };
        let report = StartReport { addresses, cores, memory, tenants, folder, notes: settings.notes.clone() };
        Ok(Server { settings, state, http, admin, report })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.report.addresses
    }

    /// What was started, tenant by tenant, for people.
    pub fn report(&self) -> &impl fmt::Display {
        &self.report
    }
}

/// The folders that must be there are, and the one for what the server makes is made.
fn prepare_folders(settings: &Settings) -> Result<()> {
    let missing = settings.missing_folders();
    if !missing.is_empty() {
        return Err(Error::invalid(missing.join("\n")));
    }
    fs::create_dir_all(&settings.state).map_err(|error| {
        let message = format!(
            "the state folder `{}` cannot be made ({error}): name another with --state DIR, INSULA_STATE or server.state",
            settings.state.display()
        );
        Error::new(Code::Conflict, message)
    })
}

/// The tenants' documents. A published key is refused where strangers could use it.
fn read_documents(settings: &Settings) -> Result<TenantsFolder> {
    let folder = TenantsFolder::read(&settings.tenants)?;
    let exposed = settings.exposed_demo_keys(&folder);
    if !exposed.is_empty() {
        return Err(Error::invalid(exposed.join("\n")));
    }
    Ok(folder)
}

fn make_state(settings: &Settings, metrics: Metrics, clock: Arc<dyn Clock>) -> Result<Arc<ServerState>> {
    let access_log = match &settings.log.access {
        Some(target) => {
            let log = AccessLogSettings { target: target.clone(), format: settings.log.format };
            Some(AccessLog::start(&log, &metrics)?)
        }
        None => None,
    };
    let token = admin::token::load(&settings.state, std::env::var(admin::token::VARIABLE).ok())?;
    let admin_token = (!settings.admin.ip().is_loopback()).then_some(token);
    Ok(ServerState::new(StateParts { limits: settings.requests.clone(), clock, metrics, access_log, admin_token }))
}

fn listen_http(settings: &Settings, cores: &CorePlan, state: &Arc<ServerState>) -> Result<Listening> {
    let listener = Listener::bind(settings.http, "server.http")?;
    let (options, state) = (http_options(settings), state.clone());
    let workers = Workers::start("http", cores.http_workers, stream_limits(settings), move || {
        http::make_service(state.clone(), options, routes::configure)
    });
    workers
        .and_then(|workers| Listening::start("http", listener, settings.max_connections, workers))
        .map_err(|error| Error::internal("the HTTP port could not be served", error.to_string()))
}

fn listen_admin(settings: &Settings, state: &Arc<ServerState>) -> Result<Listening> {
    let listener = Listener::bind(settings.admin, "server.admin")?;
    let (options, state) = (http_options(settings), state.clone());
    let workers = Workers::start("admin", 1, stream_limits(settings), move || {
        http::make_service(state.clone(), options, admin::configure)
    });
    workers
        .and_then(|workers| Listening::start("admin", listener, ADMIN_CONNECTIONS, workers))
        .map_err(|error| Error::internal("the admin port could not be served", error.to_string()))
}

fn http_options(settings: &Settings) -> HttpOptions {
    HttpOptions {
        header_timeout: settings.requests.header_timeout,
        keep_alive: settings.requests.keep_alive,
        half_closed: settings.half_closed,
    }
}

fn stream_limits(settings: &Settings) -> StreamLimits {
    StreamLimits {
        head: settings.requests.header_timeout,
        response_stall: settings.requests.response_stall,
        response_total: settings.requests.response_total,
    }
}

fn add_tenants(house: &Runtime, folder: &TenantsFolder) -> Vec<TenantReport> {
    let documents: Vec<TenantDocument> = folder.tenants.iter().map(|(_, document)| document.clone()).collect();
    house.add_tenants(&documents)
}
