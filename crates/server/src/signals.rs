//! SIGTERM and SIGINT, turned into values: a thread of its own waits for them from before the first model is loaded. It
//! decides nothing; `serve` does.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

/// Installs the handlers and sends what `make` makes for each signal to `receiver`, until that is gone.
pub(crate) fn listen<T: Send + 'static>(receiver: Sender<T>, make: fn() -> T) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let wait = async move {
        loop {
            let came = tokio::select! {
                came = terminate.recv() => came,
                came = interrupt.recv() => came,
            };
            if came.is_none() || receiver.send(make()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(wait))?;
    Ok(())
}
