//! `insula doctor`.

use clap::Args;

use super::output::OutputFormat;
use super::serve::SettingsArgs;

/// What was asked of `insula doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The settings that a server would be started with.
    #[command(flatten)]
    pub settings: SettingsArgs,

    /// A table, or JSON
    #[arg(short, long = "format", value_name = "FORMAT", default_value = "table")]
    pub output: OutputFormat,
}
