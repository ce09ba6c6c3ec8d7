//! What a hop between threads costs on the way of a request: nothing but the codec, a push to the worker's queue and back, and
//! the same through the tenant's actor. In process, no sockets. `cargo bench -p insula-benches --bench hops`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::time::{Duration, Instant};

use insula_benches::rounds::Rounds;
use insula_core::{CheckedRequest, Decode, Result, TensorSink};
use insula_exec::CpuDevice;
use insula_runtime::tenant::TenantHandle;
use insula_testkit::house::{House, infer_with};

const ROUNDS: usize = 7;
const TIME: Duration = Duration::from_millis(700);

/// Where a body is decoded.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    CallersLoop,
    TenantsLoop,
}

/// A decoder that says its work is cheap or dear, so that it is done where the way says.
struct Steered {
    decode: Box<dyn Decode>,
    way: Way,
}

impl Decode for Steered {
    fn step(&mut self, sink: &mut dyn TensorSink, budget: usize) -> Result<Option<CheckedRequest>> {
        self.decode.step(sink, budget)
    }

    fn predicted_cost(&self, _: usize) -> Duration {
        match self.way {
            Way::CallersLoop => Duration::ZERO,
            Way::TenantsLoop => Duration::from_secs(1),
        }
    }
}

fn main() -> std::io::Result<()> {
    let house = House::new(CpuDevice::new(), &["acme"]);
    let acme = house.tenant("acme");
    println!(
        "identity FP32 [1,16] through a whole runtime, no sockets; median (least-most) of {ROUNDS} interleaved rounds of {TIME:?}"
    );
    println!("{:30} {:>10} {:>28} {:>14}", "way", "in flight", "requests/s", "p50");
    for in_flight in [1, 64] {
        let mut figures = [(Rounds::default(), Rounds::default()), (Rounds::default(), Rounds::default())];
        for _ in 0..ROUNDS {
            for (way, (rate, p50)) in [Way::CallersLoop, Way::TenantsLoop].into_iter().zip(&mut figures) {
                let latencies = run(&acme, way, in_flight)?;
                rate.add(latencies.len() as f64 / TIME.as_secs_f64());
                p50.add(latencies[latencies.len() / 2].as_secs_f64() * 1e6);
            }
        }
        for (name, (rate, p50)) in ["caller's loop, queue, worker", "through the tenant's actor"].iter().zip(&figures) {
            println!("{name:30} {in_flight:10} {:>28} {:>11.1} us", rate.to_string(), p50.median());
        }
    }
    house.stop();
    Ok(())
}

/// The sorted latencies of calls that are made one after another by `in_flight` tasks on one thread.
fn run(tenant: &TenantHandle, way: Way, in_flight: usize) -> std::io::Result<Vec<Duration>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut latencies: Vec<Duration> = runtime.block_on(async {
        let end = Instant::now() + TIME;
        let callers: Vec<_> = (0..in_flight).map(|_| tokio::spawn(call_until(tenant.clone(), way, end))).collect();
        let mut all = Vec::new();
        for caller in callers {
            all.extend(caller.await.unwrap_or_default());
        }
        all
    });
    if latencies.is_empty() {
        return Err(std::io::Error::other("no call was answered"));
    }
    latencies.sort_unstable();
    Ok(latencies)
}

async fn call_until(tenant: TenantHandle, way: Way, end: Instant) -> Vec<Duration> {
    let (values, mut latencies) = ([1.5f32; 16], Vec::new());
    while Instant::now() < end {
        let started = Instant::now();
        if infer_with(&tenant, "identity_fp32", &values, |decode| Box::new(Steered { decode, way })).await.is_ok() {
            latencies.push(started.elapsed());
        }
    }
    latencies
}
