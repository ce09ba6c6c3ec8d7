//! `insula completions`: writes what a shell needs to complete the command line.

use clap::CommandFactory;
use clap_complete::{Shell as Generator, generate};

use crate::args::CommandLine;
use crate::args::completions::{CompletionsArgs, Shell};
use crate::printer::Printer;
use insula_api::status::ExitCode;

/// Runs the command.
pub fn run(args: &CompletionsArgs, printer: &mut Printer) -> ExitCode {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    generate(generator, &mut CommandLine::command(), "insula", &mut script);
    printer.data(script);
    ExitCode::Done
}
