//! The cost of a request outside the model: the identity model over REST, JSON and binary, beside a bare actix-web handler
//! that does the same parsing, interleaved in one run on the same cores. `cargo bench -p insula-benches --bench hot_path`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::time::Duration;

use insula_benches::load::{self, Request, Seen};
use insula_benches::process::Server;
use insula_benches::{bare_server, rounds::Rounds};

const ROUNDS: usize = 7;
const TIME: Duration = Duration::from_millis(1500);
const KEY: &str = "Bearer ins_test_load_0000000000000000000000000000";

fn main() -> std::io::Result<()> {
    if std::env::args().any(|argument| argument == "bare-server") {
        return bare_server::serve(std::thread::available_parallelism().map_or(1, usize::from));
    }
    let (insula, bare) = (Server::insula()?, Server::bare()?);
    println!(
        "identity FP32 [1,16], requests/s, median (least-most) of {ROUNDS} interleaved rounds of {TIME:?}; load on the same cores"
    );
    println!(
        "{:7} {:>4} {:>26} {:>26} {:>20} {:>16} {:>16}",
        "form", "c", "bare", "insula", "insula/bare", "p50 bare", "p50 insula"
    );
    for (form, ours, theirs) in [("json", json_request(), bare_json()), ("binary", binary_request(), bare_binary())] {
        for connections in [1, 16, 64] {
            compare(form, connections, (&bare.address, &theirs), (&insula.address, &ours))?;
        }
    }
    Ok(())
}

fn compare(form: &str, connections: usize, bare: (&str, &Request), insula: (&str, &Request)) -> std::io::Result<()> {
    let (mut slow, mut fast, mut ratio) = (Rounds::default(), Rounds::default(), Rounds::default());
    let (mut p50_bare, mut p50_insula) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        let ceiling = checked(load::run(bare.0, bare.1, connections, TIME)?)?;
        let ours = checked(load::run(insula.0, insula.1, connections, TIME)?)?;
        fast.add(ceiling.rate());
        slow.add(ours.rate());
        ratio.add(ours.rate() / ceiling.rate());
        p50_bare.add(ceiling.latency(0.5).as_secs_f64() * 1e6);
        p50_insula.add(ours.latency(0.5).as_secs_f64() * 1e6);
    }
    let (fast, slow) = (fast.to_string(), slow.to_string());
    println!(
        "{form:7} {connections:4} {fast:>26} {slow:>26} {:>20} {:>13.0} us {:>13.0} us",
        format!("{ratio:.2}"),
        p50_bare.median(),
        p50_insula.median()
    );
    Ok(())
}

/// A round with refused or broken requests measures something else and ends the run.
fn checked(seen: Seen) -> std::io::Result<Seen> {
    if seen.bad == 0 && seen.good > 0 {
        return Ok(seen);
    }
    Err(std::io::Error::other(format!("{} good and {} bad answers", seen.good, seen.bad)))
}

fn body() -> String {
    let data: Vec<String> = (0..16).map(|value| format!("{value}.5")).collect();
    format!(r#"{{"inputs":[{{"name":"INPUT0","shape":[1,16],"datatype":"FP32","data":[{}]}}]}}"#, data.join(","))
}

fn json_request() -> Request {
    Request::post(
        "/v2/models/identity_fp32/infer",
        &[("Authorization", KEY), ("Content-Type", "application/json")],
        body().as_bytes(),
    )
}

fn bare_json() -> Request {
    Request::post("/json", &[("Authorization", KEY), ("Content-Type", "application/json")], body().as_bytes())
}

fn binary_body() -> (String, Vec<u8>) {
    let description = concat!(
        r#"{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"FP32","parameters":{"binary_data_size":64}}],"#,
        r#""outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}"#
    );
    let tensor = (0..16u8).flat_map(|value| (f32::from(value) + 0.5).to_le_bytes());
    let bytes = description.bytes().chain(tensor).collect();
    (description.len().to_string(), bytes)
}

fn binary_request() -> Request {
    let (length, bytes) = binary_body();
    let headers = [("Authorization", KEY), ("Inference-Header-Content-Length", length.as_str())];
    Request::post("/v2/models/identity_fp32/infer", &headers, &bytes)
}

fn bare_binary() -> Request {
    let (length, bytes) = binary_body();
    Request::post("/bytes", &[("Authorization", KEY), ("Inference-Header-Content-Length", length.as_str())], &bytes)
}
