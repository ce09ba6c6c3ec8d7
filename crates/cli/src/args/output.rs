//! The choice between a table for people and JSON for programs.

use clap::ValueEnum;

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Table,
    /// For programs.
    Json,
}
