//! A real server: `insula serve` as a process of its own on free ports, with the example tenants and models.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::insula::{argument, insula, project};

/// Longer than any start or stop takes; only a server that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server; it is killed when dropped.
pub struct ServerProcess {
    child: Child,
    /// The line that says that it is ready.
    pub ready: String,
    rest: JoinHandle<String>,
    _folder: TempDir,
}

impl ServerProcess {
    /// Starts it and waits until it is ready.
    pub fn start() -> ServerProcess {
        let (tenants, models) = (argument(&project("tenants")), argument(&project("examples/models")));
        let folders = ["serve", "--tenants", &tenants, "--models", &models, "--state", "state"];
        let ports = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let (mut command, folder) = insula([&folders[..], &ports].concat()).into_parts();
        let words = folder.path().join("words");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&words).unwrap());
        let mut child = command.spawn().unwrap();
        let (tell, told) = mpsc::channel();
        let stdout = child.stdout.take().unwrap();
        let rest = thread::spawn(move || read_lines(stdout, &tell));
        match told.recv_timeout(PATIENCE) {
            Ok(ready) if !ready.is_empty() => ServerProcess { child, ready, rest, _folder: folder },
            other => {
                let _ = child.kill();
                let (ended, words) = (child.wait(), fs::read_to_string(words).unwrap());
                panic!("the server did not become ready: {other:?}, it ended with {ended:?} and said:\n{words}");
            }
        }
    }

    /// What the ready line says after `name=`.
    pub fn address(&self, name: &str) -> &str {
        let prefix = format!("{name}=");
        self.ready.split_whitespace().find_map(|word| word.strip_prefix(&prefix)).unwrap()
    }

    /// The URL for callers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address("http"))
    }

    /// Asks it to stop as a service manager does; its exit code, and what it printed after the ready line.
    pub fn stop(mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let code = self.child.wait().unwrap().code();
        let rest = std::mem::replace(&mut self.rest, thread::spawn(String::new));
        (code, rest.join().unwrap())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the first line and gives back everything behind it.
fn read_lines(stdout: ChildStdout, tell: &mpsc::Sender<String>) -> String {
    let mut reader = BufReader::new(stdout);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    tell.send(first).unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    rest
}
