//! The command `insula`: reads the command line, runs one command and ends with its exit code. Everything a user sees goes
//! through the printer. It holds no logic of serving; the server crate does.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod http_client;
mod printer;
mod refusal;
mod server_url;

use std::alloc::System;
use std::process::ExitCode;

use clap::Parser;

use self::args::CommandLine;
use self::printer::Printer;

/// Memory that is given back is cleared first, so that no tenant's bytes lie about in freed blocks.
#[global_allocator]
static ALLOCATOR: insula_server::ZeroingAllocator = insula_server::ZeroingAllocator::new(System);

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    let mut printer = Printer::new();
    let code = commands::run(&command_line.command, &mut printer).unwrap_or_else(|failure| {
        printer.failure(&failure);
        failure.exit_code()
    });
    ExitCode::from(printer.finish(code) as u8)
}
