//! `docs/errors.md` is made from the code: this test compares, and writes it anew when `INSULA_WRITE_DOCS` is set.

use std::fmt::Write;
use std::path::Path;

use insula_api::status::{exit_code, grpc_name, grpc_status, http_status};
use insula_core::Code;

fn meaning(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::InvalidArgument => {
            ("The request, document or file is malformed or does not fit the model.", "Change the request.")
        }
        Code::Unauthenticated => ("There is no key, or it is unknown, expired or revoked.", "Use a valid key."),
        Code::PermissionDenied => (
            "The key is good, but what it asks for is not allowed: the tenant is suspended, or the key lacks the scope.",
            "Ask whoever runs the server.",
        ),
        Code::NotFound => (
            "There is no such model, version, tenant or path, or it belongs to another tenant.",
            "Check the name; the model list shows what there is.",
        ),
        Code::Conflict => (
            "The state of things forbids it: it exists already, it is in use, or the folder is read-only.",
            "Look at the state, then decide.",
        ),
        Code::PayloadTooLarge => {
            ("The body, or what it unpacks to, is over the limit that the message gives.", "Send less at once.")
        }
        Code::Unsupported => (
            "It is well-formed, but insula does not offer it. An unknown `Content-Encoding` is answered so too; the accepted ones \
             are gzip and deflate.",
            "Do without it.",
        ),
        Code::QuotaExceeded => (
            "A limit of the tenant itself is reached; `reason` says which, its value and its use.",
            "Try again after `Retry-After`, or ask for a larger quota.",
        ),
        Code::Unavailable => (
            "The server cannot take it now: overload, draining, starting, or a failed part; `reason` says which.",
            "Try again after `Retry-After`, or elsewhere.",
        ),
        Code::DeadlineExceeded => (
            "The deadline passed before the answer was ready.",
            "Allow more time, or send less at once. A request that had not started was not run.",
        ),
        Code::Cancelled => ("The caller went away or withdrew the request. Seen only in logs and metrics.", "Nothing."),
        Code::Internal => {
            ("A fault of insula's own; the log has the details under the request id.", "Report it with the request id.")
        }
    }
}

fn document() -> String {
    let mut text = String::from(
        "# Errors\n\n\
         Every answer that failed has the body `{\"error\": \"...\", \"code\": \"...\", \"request_id\": \"...\"}`. `error` is for people and \
         names what was wrong;\n`code` is for programs and is one of the words below, a closed list. Refusals by a limit also have \
         `reason`:\n`{\"limit\", \"value\", \"used\", \"window_ms\", \"retry_after_ms\"}`, with the value and the use in the limit's own \
         unit.\n\n\
         This page is generated from the code that maps them.\n\n\
         | code | HTTP | gRPC | exit code | what it means | what to do |\n\
         |---|---|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let (means, advice) = meaning(code);
        let grpc = grpc_status(code);
        let (http, name, exit) = (http_status(code), grpc_name(grpc), exit_code(code) as u8);
        writeln!(text, "| `{code}` | {http} | {grpc} {name} | {exit} | {means} | {advice} |").unwrap();
    }
    text.push_str(
        "\nThe command ends with 0 when it did what was asked, 1 when the server answered with one of these codes or the command \
         itself failed,\n2 when it was used wrongly, and 3 when no server answered.\n",
    );
    text
}

#[test]
fn the_table_of_errors_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    if std::env::var_os("INSULA_WRITE_DOCS").is_some() {
        std::fs::write(&path, document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == document(), "{} is out of date: run this test with INSULA_WRITE_DOCS=1", path.display());
}
