//! The command line as types, one file a command. They only describe and check what was typed; the commands do the work.

pub mod completions;
pub mod doctor;
pub mod infer;
pub mod output;
pub mod serve;

use clap::{Parser, Subcommand};

use self::completions::CompletionsArgs;
use self::doctor::DoctorArgs;
use self::infer::InferArgs;
use self::serve::ServeArgs;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "insula",
    version,
    about = "Serves neural-network models to many tenants from one process",
    after_help = "Exit status: 0 done, 1 refused or failed, 2 wrong use, 3 server unreachable."
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server
    ///
    /// Without options, in a clone of the project, it serves the example models to the example tenants.
    Serve(ServeArgs),
    /// Send one file to a model and show the answer
    Infer(InferArgs),
    /// Check this machine and the configuration
    ///
    /// Says what the server would find here, and what to do where that is not good. The exit status is 1 if anything is bad.
    Doctor(DoctorArgs),
    /// Write the completions for a shell
    Completions(CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }
}
