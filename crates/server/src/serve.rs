//! `insula serve`: starts a server, says when it is ready, and stops it when the process is told to. Everything that a
//! person reads goes to stderr; stdout gets exactly the ready line. The command line calls it.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use insula_core::{Error, Result};
use insula_telemetry::{Metrics, OtlpSettings, TelemetryGuard, TracingSettings};

use crate::settings::Settings;
use crate::signals;
use crate::start::Server;

/// How long spans and log lines may take to get out at the end.
const FLUSH: Duration = Duration::from_secs(3);

/// What `serve` waits for.
enum Event {
    Started(Box<Result<Server>>),
    Signal,
}

/// Serves until SIGTERM or SIGINT, then stops in order; a second signal skips the waiting. Returns when everything has
/// ended. Fails if the server cannot start.
pub fn serve(settings: Settings) -> Result<()> {
    let (events, happened) = mpsc::channel();
    signals::listen(events.clone(), || Event::Signal)
        .map_err(|error| Error::internal("signals cannot be waited for", error.to_string()))?;
    let (metrics, clock) = Server::counters();
    let telemetry = set_up_telemetry(&settings, &metrics)?;
    let starting = thread::Builder::new().name("start".to_owned()).spawn(move || {
        let _ = events.send(Event::Started(Box::new(Server::start_with(settings, metrics, clock))));
    });
    starting.map_err(|error| Error::internal("the start could not begin", error.to_string()))?;
    let served = match happened.recv() {
        Ok(Event::Started(started)) => started.and_then(|server| run(server, &happened)),
        // nothing is served yet: the process may simply end
        Ok(Event::Signal) | Err(_) => Ok(()),
    };
    if let Err(error) = telemetry.shutdown(FLUSH) {
        tracing::warn!(%error, "telemetry was not flushed");
    }
    served
}

fn run(server: Server, happened: &mpsc::Receiver<Event>) -> Result<()> {
    announce(&server).map_err(|error| Error::internal("the ready line could not be written", error.to_string()))?;
    // an error means that no signal can come any more; then there is nothing left but to stop
    let _ = happened.recv();
    let report = server.stop_unless(&mut |wait| match happened.recv_timeout(wait) {
        Ok(_) => true,
        Err(mpsc::RecvTimeoutError::Timeout) => false,
        Err(mpsc::RecvTimeoutError::Disconnected) => true,
    });
    tracing::info!(unfinished = report.unfinished, "stopped");
    Ok(())
}

fn announce(server: &Server) -> io::Result<()> {
    io::stderr().write_all(server.report().to_string().as_bytes())?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "insula is ready: {}", server.addresses())?;
    stdout.flush()
}

fn set_up_telemetry(settings: &Settings, metrics: &Metrics) -> Result<TelemetryGuard> {
    let otlp = settings.otlp.endpoint.clone().map(|endpoint| OtlpSettings {
        endpoint,
        timeout: settings.otlp.timeout,
        sample_ratio: settings.otlp.sample_ratio,
    });
    let tracing = TracingSettings { filter: settings.log.level.clone(), format: settings.log.format, otlp };
    insula_telemetry::init(&tracing, metrics)
}
