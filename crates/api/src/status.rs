//! What each error code is called outside: HTTP status, gRPC status and exit code of the command. The only place that maps
//! them; `docs/errors.md` is generated from it. Server, client and the command line call it.

use insula_core::Code;

/// The HTTP status of an answer that failed with `code`.
///
/// An unknown `Content-Encoding` is 501 like everything else that is well-formed and not offered, as the protocol has it,
/// not 415. 499 is never seen by a caller, who has gone; logs and metrics show it.
pub const fn http_status(code: Code) -> u16 {
    match code {
        Code::InvalidArgument => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::Conflict => 409,
        Code::PayloadTooLarge => 413,
        Code::QuotaExceeded => 429,
        Code::Cancelled => 499,
        Code::Internal => 500,
        Code::Unsupported => 501,
        Code::Unavailable => 503,
        Code::DeadlineExceeded => 504,
    }
}

/// The gRPC status code of a call that failed with `code`.
pub const fn grpc_status(code: Code) -> i32 {
    match code {
        Code::Cancelled => 1,
        Code::InvalidArgument => 3,
        Code::DeadlineExceeded => 4,
        Code::NotFound => 5,
        Code::PermissionDenied => 7,
        Code::QuotaExceeded | Code::PayloadTooLarge => 8,
        Code::Conflict => 9,
        Code::Unsupported => 12,
        Code::Internal => 13,
        Code::Unavailable => 14,
        Code::Unauthenticated => 16,
    }
}

/// gRPC's name for a status code that [`grpc_status`] gives.
pub const fn grpc_name(status: i32) -> &'static str {
    match status {
        1 => "CANCELLED",
        3 => "INVALID_ARGUMENT",
        4 => "DEADLINE_EXCEEDED",
        5 => "NOT_FOUND",
        7 => "PERMISSION_DENIED",
        8 => "RESOURCE_EXHAUSTED",
        9 => "FAILED_PRECONDITION",
        12 => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        16 => "UNAUTHENTICATED",
        _ => "UNKNOWN",
    }
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// It did what was asked.
    Done = 0,
    /// The server, or the command itself, refused or failed.
    Failed = 1,
    /// The command line or a file it names is wrong; nothing was tried.
    Misused = 2,
    /// No server answered.
    Unreachable = 3,
}

/// The exit code of a command whose request the server answered with `code`. [`ExitCode::Misused`] and
/// [`ExitCode::Unreachable`] are the command's own: no answer stands behind them.
pub const fn exit_code(code: Code) -> ExitCode {
    match code {
        Code::InvalidArgument
        | Code::Unauthenticated
        | Code::PermissionDenied
        | Code::NotFound
        | Code::Conflict
        | Code::PayloadTooLarge
        | Code::Unsupported
        | Code::QuotaExceeded
        | Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Internal => ExitCode::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_by_quota_and_by_overload_are_told_apart_everywhere() {
        assert_eq!((http_status(Code::QuotaExceeded), http_status(Code::Unavailable)), (429, 503));
        assert_ne!(grpc_status(Code::QuotaExceeded), grpc_status(Code::Unavailable));
    }

    #[test]
    fn every_code_has_an_http_status_of_its_own_and_a_grpc_name() {
        let statuses: std::collections::HashSet<_> = Code::ALL.iter().map(|code| http_status(*code)).collect();
        assert_eq!(statuses.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_ne!(grpc_name(grpc_status(code)), "UNKNOWN");
        }
    }
}
