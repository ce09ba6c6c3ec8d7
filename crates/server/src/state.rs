//! What every part of the server looks at while it runs: the phase it is in, the house once it stands, limits, counters.
//! Values and small questions only; the start fills it, the stop changes its phase, handlers read it.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use insula_core::{Clock, Error, Nanos, Refusal, Result};
use insula_runtime::directory::Directory;
use insula_runtime::runtime::{Health, Runtime};
use insula_telemetry::{AccessLog, Metrics};

use crate::http::failed_keys::FailedKeys;
use crate::http::uploads::Uploads;
use crate::settings::RequestLimits;

/// How long callers should wait while the server starts.
const START_RETRY: Duration = Duration::from_secs(1);

/// How far the server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Models are being loaded.
    Starting,
    /// Requests are taken.
    Serving,
    /// It has been told to stop.
    Draining,
}

/// What a server's state is made of.
pub(crate) struct StateParts {
    /// Bounds of one request.
    pub(crate) limits: RequestLimits,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Everything that is counted.
    pub(crate) metrics: Metrics,
    /// The access log, if there is one.
    pub(crate) access_log: Option<AccessLog>,
    /// The hash of the token that the admin port asks for, if it asks for one.
    pub(crate) admin_token: Option<[u8; 32]>,
}

/// The state of one server.
pub(crate) struct ServerState {
    parts: StateParts,
    failed_keys: FailedKeys,
    uploads: Uploads,
    phase: AtomicU8,
    directory: OnceLock<Arc<Directory>>,
    runtime: RwLock<Option<Runtime>>,
}

impl ServerState {
    /// The state of a server that begins to start.
    pub(crate) fn new(parts: StateParts) -> Arc<ServerState> {
        Arc::new(ServerState {
            parts,
            failed_keys: FailedKeys::default(),
            uploads: Uploads::new(),
            phase: AtomicU8::new(Phase::Starting as u8),
            directory: OnceLock::new(),
            runtime: RwLock::new(None),
        })
    }

    /// Bounds of one request.
    pub(crate) fn limits(&self) -> &RequestLimits {
        &self.parts.limits
    }

    /// The time.
    pub(crate) fn now(&self) -> Nanos {
        self.parts.clock.now()
    }

    /// Everything that is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// The access log, if there is one.
    pub(crate) fn access_log(&self) -> Option<&AccessLog> {
        self.parts.access_log.as_ref()
    }

    /// The hash of the token that the admin port asks for, if it asks for one.
    pub(crate) fn admin_token(&self) -> Option<[u8; 32]> {
        self.parts.admin_token
    }

    /// Who has been trying wrong keys.
    pub(crate) fn failed_keys(&self) -> &FailedKeys {
        &self.failed_keys
    }

    /// The loads of models that are going on.
    pub(crate) fn uploads(&self) -> &Uploads {
        &self.uploads
    }

    /// Moves in: from now on requests find the house's directory.
    pub(crate) fn set_runtime(&self, runtime: Runtime) {
        let _ = self.directory.set(runtime.directory());
        *self.runtime.write().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
    }

    /// Does something with the house, if it stands.
    pub(crate) fn with_runtime<T>(&self, with: impl FnOnce(&Runtime) -> T) -> Option<T> {
        self.runtime.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(with)
    }

    /// Takes the house out to stop it.
    pub(crate) fn take_runtime(&self) -> Option<Runtime> {
        self.runtime.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// All tenants are there: readiness goes up, unless the stop came first.
    pub(crate) fn begin_serving(&self) {
        let (from, to) = (Phase::Starting as u8, Phase::Serving as u8);
        let _ = self.phase.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// The server was told to stop: readiness goes down, connections end with their next answer.
    pub(crate) fn begin_drain(&self) {
        self.phase.store(Phase::Draining as u8, Ordering::SeqCst);
        self.with_runtime(Runtime::drain);
    }

    /// Whether answers should end their connections.
    pub(crate) fn closes_connections(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Draining as u8
    }

    /// Keys and tenants. Refuses until the server is ready.
    pub(crate) fn directory(&self) -> Result<&Arc<Directory>> {
        let starting = self.phase.load(Ordering::SeqCst) == Phase::Starting as u8;
        self.directory.get().filter(|_| !starting).ok_or_else(|| {
            let refusal =
                Refusal { limit: "starting", value: 0.0, used: 0.0, window: Duration::ZERO, retry_after: START_RETRY };
            Error::unavailable("the server is starting and its models are being loaded: try again", refusal)
        })
    }

    /// Whether the server is ready for requests, and why not.
    pub(crate) fn health(&self) -> Health {
        let phase = self.phase.load(Ordering::SeqCst);
        let own = if phase == Phase::Starting as u8 {
            Some("the server is starting")
        } else if phase == Phase::Draining as u8 {
            Some("the server is draining")
        } else {
            None
        };
        let house = self.with_runtime(Runtime::health).filter(|_| own.is_none());
        house.unwrap_or_else(|| Health {
            ready: false,
            reasons: vec![own.unwrap_or("the server has stopped").to_owned()],
        })
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState").field("phase", &self.phase).finish_non_exhaustive()
    }
}
