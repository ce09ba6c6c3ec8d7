//! The commands, one file each: they take what was typed and a printer, and say how the process ends.

pub mod completions;
pub mod doctor;
pub mod infer;
pub mod serve;

use insula_api::status::ExitCode;

use crate::args::Command;
use crate::failure::Failure;
use crate::printer::Printer;

/// Runs `command`.
pub fn run(command: &Command, printer: &mut Printer) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(args) => serve::run(args, printer),
        Command::Infer(args) => infer::run(args, printer),
        Command::Doctor(args) => doctor::run(args, printer),
        Command::Completions(args) => Ok(completions::run(args, printer)),
    }
}
