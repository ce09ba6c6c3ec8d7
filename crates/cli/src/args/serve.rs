//! `insula serve`, and the options that say what a server is made of, which `insula doctor` shares. Values stay text: the
//! settings check them together with those of the file and the environment, so that all faults come out at once.

use std::path::PathBuf;

use clap::Args;
use insula_server::settings::Overrides;

/// What was asked of `insula serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The settings.
    #[command(flatten)]
    pub settings: SettingsArgs,

    /// Check the settings, the tenants' documents and the folders, then stop without serving
    #[arg(long)]
    pub check: bool,
}

/// Options that stand over the environment, which stands over the settings file.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// The settings file [env: INSULA_CONFIG] [default: insula.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where callers connect by HTTP [env: INSULA_HTTP] [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<String>,

    /// Not available in this version; `-` says that there is none [env: INSULA_GRPC] [default: -]
    #[arg(long, value_name = "ADDRESS:PORT", allow_hyphen_values = true)]
    pub grpc: Option<String>,

    /// Where metrics and probes are served [env: INSULA_ADMIN] [default: 127.0.0.1:8002]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub admin: Option<String>,

    /// The folder of tenant documents [env: INSULA_TENANTS] [default: tenants]
    #[arg(long, value_name = "DIR")]
    pub tenants: Option<PathBuf>,

    /// The catalog of models [env: INSULA_MODELS] [default: examples/models]
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,

    /// Where the server keeps what it makes [env: INSULA_STATE] [default: state]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// What runs the models: auto or cpu [env: INSULA_DEVICE] [default: auto]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,

    /// How many workers run batches [env: INSULA_WORKERS] [default: one a NUMA node]
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
}

impl SettingsArgs {
    /// The same, as the settings take them.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            http: self.http.clone(),
            grpc: self.grpc.clone(),
            admin: self.admin.clone(),
            tenants: self.tenants.clone(),
            models: self.models.clone(),
            state: self.state.clone(),
            device: self.device.clone(),
            workers: self.workers.clone(),
        }
    }
}
