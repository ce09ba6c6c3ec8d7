//! Settings from flags: what the command line was told, as text, so that its faults come out with all others. It parses
//! nothing. The command line fills it.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::fault::Faults;
use super::key::{self, Given};

/// What flags say; `None` is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--config`: the settings file.
    pub config: Option<PathBuf>,
    /// `--http`: an address and port.
    pub http: Option<String>,
    /// `--grpc`: `-`, since gRPC is not available in this version.
    pub grpc: Option<String>,
    /// `--admin`: an address and port.
    pub admin: Option<String>,
    /// `--tenants`: the folder of tenant documents.
    pub tenants: Option<PathBuf>,
    /// `--models`: the catalog.
    pub models: Option<PathBuf>,
    /// `--state`: where the server keeps what it makes.
    pub state: Option<PathBuf>,
    /// `--device`: `auto` or `cpu`.
    pub device: Option<String>,
    /// `--workers`: how many run batches.
    pub workers: Option<String>,
}

impl Overrides {
    /// The flags that are given, in the order of the documentation; notes paths that are not UTF-8.
    pub(super) fn given(&self, faults: &mut Faults) -> Vec<Given> {
        let flags: [(&str, Option<&OsStr>); 8] = [
            ("http", self.http.as_ref().map(OsStr::new)),
            ("grpc", self.grpc.as_ref().map(OsStr::new)),
            ("admin", self.admin.as_ref().map(OsStr::new)),
            ("tenants", self.tenants.as_ref().map(|path| path.as_os_str())),
            ("models", self.models.as_ref().map(|path| path.as_os_str())),
            ("state", self.state.as_ref().map(|path| path.as_os_str())),
            ("device", self.device.as_ref().map(OsStr::new)),
            ("workers", self.workers.as_ref().map(OsStr::new)),
        ];
        let mut given = Vec::new();
        for (name, value) in flags {
            let (Some(value), Some(key)) = (value, key::by_path(&format!("server.{name}"))) else { continue };
            match value.to_str() {
                Some(value) => given.push(Given { key, value: value.to_owned(), place: format!("--{name}") }),
                None => faults.note(format!("--{name}"), key.path, "the value is not UTF-8"),
            }
        }
        given
    }
}
