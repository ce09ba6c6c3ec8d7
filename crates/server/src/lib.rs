//! insula's server: settings, the HTTP and admin listeners, start and stop. It stands on the runtime, which knows tenants
//! and models but no protocol, and on the api crate, which knows formats but no sockets. The command line calls
//! [`settings`] and [`serve`]; tests start a [`Server`] in their own process.
#![forbid(unsafe_code)]

mod admin;
mod cores;
mod host;
mod house;
mod http;
mod report;
mod serve;
pub mod settings;
mod signals;
mod start;
mod state;
mod stop;
mod transport;

pub use insula_runtime::ZeroingAllocator;
pub use serve::serve;
pub use start::{Addresses, Server};
pub use stop::Stopped;
