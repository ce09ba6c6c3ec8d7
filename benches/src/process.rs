//! Processes under test: started, waited for until they say that they are ready, and ended when dropped.

use std::io::{BufRead, BufReader, Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server in a process of its own.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens for HTTP.
    pub address: String,
}

impl Server {
    /// Starts `command` and reads its standard output up to the line from which `address` takes the address.
    pub fn start(mut command: Command, address: impl Fn(&str) -> Option<String>) -> Result<Server> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Error::other("no standard output"))?;
        for line in BufReader::new(stdout).lines() {
            if let Some(address) = address(&line?) {
                return Ok(Server { child, address });
            }
        }
        child.wait()?;
        Err(Error::other(format!("{command:?} ended before it was ready")))
    }

    /// The bare server: this very program, started again with the argument `bare-server`.
    pub fn bare() -> Result<Server> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare-server");
        Server::start(command, |line| line.strip_prefix("ready ").map(str::to_string))
    }

    /// insula with the test models and the test tenant, from `INSULA_BINARY` or the release folder.
    pub fn insula() -> Result<Server> {
        let root = root();
        let binary = std::env::var_os("INSULA_BINARY").map_or(root.join("target/release/insula"), PathBuf::from);
        let mut command = Command::new(&binary);
        let state = std::env::temp_dir().join(format!("insula-bench-{}", std::process::id()));
        let tenants = unlimited_tenant(&root, &state)?;
        command
            .args(["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .arg("--tenants")
            .arg(tenants)
            .arg("--models")
            .arg(root.join("examples/test/models"))
            .arg("--state")
            .arg(state);
        Server::start(command, |line| {
            let rest = line.strip_prefix("insula is ready: http=")?;
            rest.split(' ').next().map(str::to_string)
        })
        .map_err(|error| {
            Error::new(error.kind(), format!("{}: {error}: build it with cargo build --release", binary.display()))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The test tenant without its request rate, which a benchmark of the server itself would run into.
fn unlimited_tenant(root: &Path, state: &Path) -> Result<PathBuf> {
    let document = std::fs::read_to_string(root.join("examples/test/tenants/load.toml"))?;
    let raised = document.lines().map(|line| match line.split_once(" = ").map(|(key, _)| key) {
        Some("requests_per_second") => "requests_per_second = 10000000.0".to_string(),
        Some("burst") => "burst = 1000000".to_string(),
        _ => line.to_string(),
    });
    let text = raised.collect::<Vec<_>>().join("\n");
    let folder = state.join("tenants");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("load.toml"), text)?;
    Ok(folder)
}

/// The root of the checkout.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}
