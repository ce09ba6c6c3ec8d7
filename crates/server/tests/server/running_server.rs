//! A server in this process with the tests' tenant and models, and the one that most tests share.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use insula_server::Server;
use insula_server::settings::Settings;
use tempfile::TempDir;

use crate::wire::{Answer, Connection};

/// The key of the tests' tenant, which stands in its document.
pub const KEY: &str = "ins_test_load_0000000000000000000000000000";

/// A server and the folder of what it makes.
pub struct RunningServer {
    pub server: Server,
    pub state: TempDir,
}

/// The server that tests share which leave it as they found it.
pub static SHARED: LazyLock<RunningServer> = LazyLock::new(|| RunningServer::start(|_| {}));

/// A folder of the project.
pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

impl RunningServer {
    /// Starts a server with the settings that `change` makes of the tests' usual ones.
    pub fn start(change: impl FnOnce(&mut Settings)) -> RunningServer {
        let state = tempfile::tempdir().unwrap();
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut settings = Settings {
            http: local,
            admin: local,
            tenants: project("examples/test/tenants"),
            models: project("examples/test/models"),
            state: state.path().to_owned(),
            ..Settings::default()
        };
        change(&mut settings);
        RunningServer { server: Server::start(settings).unwrap(), state }
    }

    /// A new connection for callers.
    pub fn connect(&self) -> Connection {
        Connection::open(self.server.addresses().http)
    }

    /// One request on a connection of its own, with the tenant's key.
    pub fn ask(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.ask(verb, path, headers, body)
    }

    /// `POST` of a JSON inference.
    pub fn infer(&self, model: &str, body: &serde_json::Value) -> Answer {
        self.ask("POST", &format!("/v2/models/{model}/infer"), &[JSON], body.to_string().as_bytes())
    }

    /// The text of the metrics.
    pub fn metrics(&self) -> String {
        let mut connection = Connection::open(self.server.addresses().admin);
        let answer = connection.ask("GET", "/metrics", &[], b"");
        assert_eq!(answer.status, 200);
        answer.text()
    }
}

/// The content type of JSON bodies.
pub const JSON: (&str, &str) = ("content-type", "application/json");
