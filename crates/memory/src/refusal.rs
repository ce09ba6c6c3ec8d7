//! The errors this crate makes, each worded once; refusals say which limit, its value, the use and when to come back. Domains,
//! the budget and the backings call it.

use std::io;
use std::time::Duration;

use insula_core::{Code, Error, Refusal};

/// When memory that is in use has a good chance to have come back: requests are short.
const MEMORY_RETRY: Duration = Duration::from_millis(100);
/// When the server's memory may have room again: others must finish or be trimmed.
const SERVER_RETRY: Duration = Duration::from_secs(1);

/// The tenant's memory limit is reached.
pub(crate) fn memory(bytes: usize, in_use: u64, limit: u64) -> Error {
    let message = match usize::try_from(limit) {
        Ok(limit) if bytes > limit => format!(
            "{bytes} bytes of tenant memory were asked for at once and the limit is {limit}: send less in one request or raise the \
             `memory` quota"
        ),
        _ => format!(
            "{bytes} bytes of tenant memory were asked for and {in_use} of {limit} are in use: let other requests end, send smaller \
             ones or raise the `memory` quota"
        ),
    };
    Error::quota(message, counted("memory", limit, in_use, MEMORY_RETRY))
}

/// The tenant's limit would allow it, but what is free lies in pieces that are too small.
pub(crate) fn fragmented(bytes: usize, in_use: u64, limit: u64) -> Error {
    let message = format!(
        "{bytes} bytes of tenant memory were asked for in one piece; {in_use} of {limit} are in use and the free ones lie in pieces too \
         small: let other requests end, send smaller ones or raise the `memory` quota"
    );
    Error::quota(message, counted("memory", limit, in_use, MEMORY_RETRY))
}

/// The server's budget is used up.
pub(crate) fn server_memory(bytes: u64, used: u64, limit: u64) -> Error {
    let message = format!(
        "{bytes} bytes of the server's memory were asked for and {used} of {limit} are in use: try again later"
    );
    Error::unavailable(message, counted("server_memory", limit, used, SERVER_RETRY))
}

/// The operating system would not do what was asked of it.
pub(crate) fn system(bytes: usize, call: &str, error: &io::Error) -> Error {
    let hint = match error.raw_os_error() {
        Some(libc::ENOMEM) => "; out of memory, of address space or of mappings (vm.max_map_count)",
        _ => "",
    };
    Error::unavailable(
        format!("the operating system refused {bytes} bytes of memory: try again later"),
        Refusal { limit: "server_memory", value: 0.0, used: 0.0, window: Duration::ZERO, retry_after: SERVER_RETRY },
    )
    .with_detail(format!("{call}: {error}{hint}"))
}

/// A fault of this crate's own: memory was named that is not there.
pub(crate) fn outside_windows(detail: impl Into<String>) -> Error {
    Error::internal("memory could not be reached", detail)
}

/// The tenant is being deleted: its domain is closed.
pub(crate) fn tenant_deleted() -> Error {
    let refusal =
        Refusal { limit: "tenant_deleted", value: 0.0, used: 0.0, window: Duration::ZERO, retry_after: SERVER_RETRY };
    Error::unavailable("the tenant has been deleted: its memory takes nothing new", refusal)
}

/// A body, or what it unpacks to, is over its limit.
pub(crate) fn too_large(what: &str, bytes: u64, limit: u64) -> Error {
    Error::new(
        Code::PayloadTooLarge,
        format!("the {what} has at least {bytes} bytes, the limit is {limit} bytes: send less in one request"),
    )
}

/// A refusal carries its figures as floats: byte counts below 2^53 are exact.
fn counted(limit: &'static str, value: u64, used: u64, retry_after: Duration) -> Refusal {
    Refusal { limit, value: value as f64, used: used as f64, window: Duration::ZERO, retry_after }
}
