//! What the benchmarks share: a load generator, a bare actix-web server as the ceiling, processes under test, and medians
//! over interleaved runs. Timings live here and in `benches/`; no test depends on them.
#![forbid(unsafe_code)]

pub mod bare_server;
pub mod load;
pub mod process;
pub mod rounds;
