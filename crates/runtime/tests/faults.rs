//! Panics injected under load, in a decoder, the tenant's handler, the router, the fair queue, a worker and a kernel: only
//! the guilty request fails, and whoever died is back within 100 ms.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use insula_core::Code;
use insula_exec::CpuDevice;
use insula_runtime::faults::FaultPoint;
use insula_runtime::tenant::TenantHandle;
use insula_testkit::house::{House, infer, infer_with};
use insula_testkit::watched_device::WatchedDevice;

/// Calls `tenant` from `callers` tasks until told to stop; returns (good, bad answers).
struct Load {
    stop: Arc<AtomicBool>,
    good: Arc<AtomicUsize>,
    bad: Arc<AtomicUsize>,
    callers: Vec<tokio::task::JoinHandle<()>>,
}

/// 80 KiB in binary form: decoded on the tenant's loop. 64 bytes: on the caller's.
const LARGE_ROWS: usize = 32;

impl Load {
    fn start(tenants: &[TenantHandle], callers: usize, large: bool) -> Load {
        let (stop, good, bad) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let callers = (0..callers).map(|number| {
            let (tenant, stop, good, bad) =
                (tenants[number % tenants.len()].clone(), stop.clone(), good.clone(), bad.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let answer = call(&tenant, large, number as f32).await;
                    match answer {
                        Ok(()) => good.fetch_add(1, Ordering::SeqCst),
                        Err(_) => bad.fetch_add(1, Ordering::SeqCst),
                    };
                }
            })
        });
        let callers = callers.collect();
        Load { stop, good, bad, callers }
    }

    async fn more_good(&self, count: usize) {
        let wanted = self.good.load(Ordering::SeqCst) + count;
        while self.good.load(Ordering::SeqCst) < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::SeqCst);
        for caller in self.callers {
            caller.await.unwrap();
        }
        (self.good.load(Ordering::SeqCst), self.bad.load(Ordering::SeqCst))
    }
}

/// One request; a large one goes through the tenant's loop because its decoder says that it is dear.
async fn call(tenant: &TenantHandle, large: bool, value: f32) -> Result<(), insula_core::Error> {
    let rows = if large { LARGE_ROWS } else { 1 };
    let values = vec![value; rows * 16];
    let answer = infer_with(tenant, "identity_fp32", &values, |decode| match large {
        true => Box::new(Dear(decode)),
        false => decode,
    });
    assert_eq!(answer.await?, values, "an answer holds something else than was sent");
    Ok(())
}

/// A decoder whose work is predicted to be dear.
struct Dear(Box<dyn insula_core::Decode>);

impl insula_core::Decode for Dear {
    fn step(
        &mut self,
        sink: &mut dyn insula_core::TensorSink,
        budget: usize,
    ) -> insula_core::Result<Option<insula_core::CheckedRequest>> {
        self.0.step(sink, budget)
    }

    fn predicted_cost(&self, _: usize) -> Duration {
        Duration::from_millis(1)
    }
}

/// Strikes `point` once under load and returns how many requests failed and how long answers stood still.
async fn strike(point: FaultPoint, large: bool) -> (usize, Duration) {
    let house = House::new(CpuDevice::new(), &["acme", "beta"]);
    let tenants = [house.tenant("acme"), house.tenant("beta")];
    let load = Load::start(&tenants, 16, large);
    load.more_good(200).await;
    house.runtime.faults().arm(point, 1);
    let struck = Instant::now();
    // more answers than can have been under way when it was armed: the fault has struck by then
    load.more_good(40).await;
    for tenant in &tenants {
        // the one request that the fault may take is another's, or is asked again
        if call(tenant, large, 0.5).await.is_err() {
            call(tenant, large, 0.5).await.unwrap();
        }
    }
    let stood = struck.elapsed();
    eprintln!("{point:?}: both tenants answered within {stood:?} of the strike");
    load.more_good(64).await;
    let (good, bad) = load.end().await;
    assert!(good > 300);
    for tenant in &tenants {
        infer(tenant, "identity_fp32", 1, 1.0).await.unwrap();
        assert_eq!((tenant.inflight(), tenant.queued()), (0, 0));
    }
    house.stop();
    (bad, stood)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decoder_that_panics_fails_its_own_request() {
    for large in [false, true] {
        assert_eq!(strike(FaultPoint::Decode, large).await.0, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_actor_that_panics_fails_the_request_in_its_hand_and_comes_back() {
    let (bad, _) = strike(FaultPoint::TenantHandler, true).await;
    assert_eq!(bad, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fair_queue_that_panics_fails_the_entry_in_its_hand() {
    let (bad, _) = strike(FaultPoint::Batcher, false).await;
    assert_eq!(bad, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_panics_between_batches_fails_nobody() {
    let (bad, _) = strike(FaultPoint::Worker, false).await;
    assert_eq!(bad, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_that_panics_leaves_serving_on_its_last_table_and_comes_back() {
    let house = House::new(CpuDevice::new(), &["acme"]);
    let acme = house.tenant("acme");
    let load = Load::start(std::slice::from_ref(&acme), 8, false);
    load.more_good(50).await;
    house.runtime.faults().arm(FaultPoint::Router, 1);
    // loading places the model: the first try kills the router, the next one finds it built again
    acme.load_model("versions", None).await.unwrap();
    load.more_good(50).await;
    assert_eq!(load.end().await.1, 0);
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_whose_actor_dies_too_often_is_set_aside_and_its_neighbour_serves() {
    let house = House::new(CpuDevice::new(), &["acme", "beta"]);
    let (acme, beta) = (house.tenant("acme"), house.tenant("beta"));
    for _ in 0..6 {
        house.runtime.faults().arm(FaultPoint::TenantHandler, 1);
        assert!(call(&acme, true, 1.0).await.is_err());
    }
    let mut refused = acme.admit("identity_fp32", None, None);
    for _ in 0..200 {
        if refused.is_err() {
            break;
        }
        drop(refused);
        tokio::time::sleep(Duration::from_millis(5)).await;
        refused = acme.admit("identity_fp32", None, None);
    }
    assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
    infer(&beta, "identity_fp32", 1, 1.0).await.unwrap();
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_tenant_loop_delays_only_its_own_large_requests() {
    let house = House::new(CpuDevice::new(), &["acme", "beta"]);
    let (acme, beta) = (house.tenant("acme"), house.tenant("beta"));
    house.runtime.faults().arm_stall(Duration::from_secs(2));
    let started = Instant::now();
    let blocked = tokio::spawn({
        let acme = acme.clone();
        async move { call(&acme, true, 1.0).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    for _ in 0..20 {
        call(&acme, false, 2.0).await.unwrap();
        call(&beta, false, 3.0).await.unwrap();
        call(&beta, true, 4.0).await.unwrap();
    }
    assert!(!blocked.is_finished(), "the blocked request was answered while its loop was blocked");
    assert!(started.elapsed() < Duration::from_secs(2), "others waited for the blocked loop");
    blocked.await.unwrap().unwrap();
    assert!(started.elapsed() >= Duration::from_secs(2));
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_poisoned_request_in_mixed_batches_fails_alone() {
    const POISON: f32 = 666.0;
    let house = House::new(WatchedDevice::poisoned_by(POISON), &["acme", "beta", "gamma"]);
    let mut calls = Vec::new();
    for number in 0..96usize {
        let tenant = house.tenant(["acme", "beta", "gamma"][number % 3]);
        let value = if number == 40 { POISON } else { number as f32 };
        calls.push((number, tokio::spawn(async move { infer(&tenant, "identity_fp32", 1, value).await })));
    }
    let mut failed = Vec::new();
    for (number, call) in calls {
        match call.await.unwrap() {
            Ok(values) => assert_eq!(values, [number as f32; 16]),
            Err(error) => {
                assert_eq!(error.code(), Code::Internal);
                failed.push(number);
            }
        }
    }
    assert_eq!(failed, [40]);
    house.stop();
}
