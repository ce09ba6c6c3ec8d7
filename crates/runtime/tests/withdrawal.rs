//! Callers that go away and deadlines that pass: what has not been claimed never reaches a kernel, and everything it held is
//! given back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use insula_core::Code;
use insula_testkit::house::{House, document, infer, infer_with};
use insula_testkit::watched_device::WatchedDevice;
use tokio::sync::Semaphore;

/// A device that counts the requests it runs and waits in each run for a permit.
fn gated() -> (WatchedDevice, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (ran, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, wait) = (ran.clone(), gate.clone());
    let device = WatchedDevice::new(move |batch| {
        count.fetch_add(batch.entries.len(), Ordering::SeqCst);
        while wait.try_acquire().map(|permit| permit.forget()).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (device, ran, gate)
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..5000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{what}: not so after 5 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_whose_callers_left_the_queue_never_run_and_hold_nothing() {
    let (device, ran, gate) = gated();
    let house = House::new(device, &["acme"]);
    let acme = house.tenant("acme");
    let first = tokio::spawn({
        let acme = acme.clone();
        async move { infer(&acme, "identity_fp32", 1, 1.0).await }
    });
    until("the first request runs", || ran.load(Ordering::SeqCst) == 1).await;
    let used = acme.memory().in_use;
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let acme = acme.clone();
            tokio::spawn(async move { infer(&acme, "identity_fp32", 1, 2.0).await })
        })
        .collect();
    until("all wait in the queue", || acme.queued() == 50).await;
    for caller in &callers {
        caller.abort();
    }
    until("their permits are back", || acme.inflight() == 1).await;
    assert_eq!(acme.memory().in_use, used, "what they held in memory is not free");
    assert_eq!(acme.queued(), 50, "a place in the queue comes back when the entry leaves it");
    gate.add_permits(1000);
    assert_eq!(first.await.unwrap().unwrap(), [1.0; 16]);
    until("the queue is empty", || acme.queued() == 0).await;
    infer(&acme, "identity_fp32", 1, 3.0).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 2, "a request ran whose caller had gone");
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_a_waiting_request_at_once_and_it_never_runs() {
    let (device, ran, gate) = gated();
    let house = House::with_documents(device, &[document("acme", "timeout_ms = 300\n"), document("beta", "")]).unwrap();
    let (acme, beta) = (house.tenant("acme"), house.tenant("beta"));
    let blocking = tokio::spawn({
        let beta = beta.clone();
        async move { infer(&beta, "identity_fp32", 1, 1.0).await }
    });
    until("the first request runs", || ran.load(Ordering::SeqCst) == 1).await;
    let late = infer(&acme, "identity_fp32", 1, 2.0).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(acme.inflight(), 0);
    gate.add_permits(1000);
    blocking.await.unwrap().unwrap();
    infer(&beta, "identity_fp32", 1, 1.0).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 2, "a request ran after its deadline");
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_while_its_batch_runs_disturbs_nobody_in_it() {
    let (device, ran, gate) = gated();
    let house = House::new(device, &["acme", "beta"]);
    let (acme, beta) = (house.tenant("acme"), house.tenant("beta"));
    let first = tokio::spawn({
        let acme = acme.clone();
        async move { infer(&acme, "identity_fp32", 1, 1.0).await }
    });
    until("the first request runs", || ran.load(Ordering::SeqCst) == 1).await;
    first.abort();
    let second = tokio::spawn(async move { infer(&beta, "identity_fp32", 1, 2.0).await });
    gate.add_permits(1000);
    assert_eq!(second.await.unwrap().unwrap(), [2.0; 16]);
    until("all is given back", || acme.inflight() == 0 && acme.memory().in_use == 0).await;
    house.stop();
}

/// A decoder that needs many steps, so that its request is dropped between them too.
struct Stepwise {
    decode: Box<dyn insula_core::Decode>,
    steps: usize,
}

impl insula_core::Decode for Stepwise {
    fn step(
        &mut self,
        sink: &mut dyn insula_core::TensorSink,
        budget: usize,
    ) -> insula_core::Result<Option<insula_core::CheckedRequest>> {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                Ok(None)
            }
            None => self.decode.step(sink, budget),
        }
    }

    fn predicted_cost(&self, _: usize) -> Duration {
        // many steps go through the tenant's loop, none stay here
        Duration::from_millis(self.steps as u64)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_dropped_at_any_await_point_gives_everything_back() {
    let house = House::new(WatchedDevice::synthetic(|_| Duration::from_millis(1)), &["acme"]);
    let acme = house.tenant("acme");
    for steps in [0usize, 4] {
        let mut finished = false;
        for polls in 0..200 {
            let wrap = |decode| -> Box<dyn insula_core::Decode> { Box::new(Stepwise { decode, steps }) };
            let mut call = Box::pin(infer_with(&acme, "identity_fp32", &[1.0; 16], wrap));
            for _ in 0..polls {
                let polled = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context))).await;
                if let std::task::Poll::Ready(answer) = polled {
                    assert_eq!(answer.unwrap(), [1.0; 16]);
                    finished = true;
                    break;
                }
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
            drop(call);
            until("everything is back", || acme.inflight() == 0 && acme.queued() == 0 && acme.memory().in_use == 0)
                .await;
            if finished {
                break;
            }
        }
        assert!(finished, "the request never came to its end");
    }
    house.stop();
}
