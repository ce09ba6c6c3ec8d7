//! The command as a user runs it: the real binary in an empty folder with an empty environment, what it prints on both
//! outputs, and its exit code. One binary of tests, since each would link the whole server again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

#[path = "cli/command_line.rs"]
mod command_line;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/fake_server.rs"]
mod fake_server;
#[path = "cli/infer_refused.rs"]
mod infer_refused;
#[path = "cli/insula.rs"]
mod insula;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/serve_check.rs"]
mod serve_check;
#[path = "cli/server_process.rs"]
mod server_process;
