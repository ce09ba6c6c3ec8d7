//! Why a command did not do what was asked: one or more messages, hints about what to do next, and the exit code. It
//! prints nothing; `main` hands it to the printer.

use std::fmt;

use insula_api::status::ExitCode;

/// A command's failure. Messages begin in lower case, name the value at fault and end without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    exit_code: ExitCode,
    messages: Vec<String>,
    hints: Vec<String>,
}

impl Failure {
    /// It was refused, or it failed.
    pub fn new(message: impl fmt::Display) -> Failure {
        Failure::with_exit_code(ExitCode::Failed, message)
    }

    /// The command line, or a file that it names, is wrong.
    pub fn misused(message: impl fmt::Display) -> Failure {
        Failure::with_exit_code(ExitCode::Misused, message)
    }

    /// The server could not be reached or did not answer.
    pub fn unreachable(message: impl fmt::Display) -> Failure {
        Failure::with_exit_code(ExitCode::Unreachable, message)
    }

    fn with_exit_code(exit_code: ExitCode, message: impl fmt::Display) -> Failure {
        Failure { exit_code, messages: vec![message.to_string()], hints: Vec::new() }
    }

    /// Several faults that were found together. A fault of several lines is as many messages.
    pub fn several<F: fmt::Display>(exit_code: ExitCode, faults: impl IntoIterator<Item = F>) -> Failure {
        let lines = |fault: F| fault.to_string().lines().map(str::to_owned).collect::<Vec<_>>();
        Failure { exit_code, messages: faults.into_iter().flat_map(lines).collect(), hints: Vec::new() }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hints.push(hint.to_string());
        self
    }

    /// How the process ends.
    pub fn exit_code(&self) -> ExitCode {
        self.exit_code
    }

    /// What went wrong, one line each.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// What to do about it, one line each.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}
