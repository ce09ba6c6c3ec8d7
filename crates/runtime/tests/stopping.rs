//! The end of a house: admitted requests are answered, threads are those of before, memory is back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use insula_core::Code;
use insula_testkit::house::{House, infer};
use insula_testkit::watched_device::WatchedDevice;

/// The names of this process's threads that insula or its loops made, with their counts.
fn threads() -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.starts_with("insula") || name.starts_with("actix") {
            *names.entry(name.trim().to_string()).or_insert(0) += 1;
        }
    }
    names
}

// one test alone in its process: others would start and end threads meanwhile
#[test]
fn a_stop_answers_what_was_admitted_and_leaves_no_thread_behind() {
    let before = threads();
    let house = House::new(WatchedDevice::synthetic(|_| Duration::from_millis(20)), &["acme", "beta"]);
    assert!(threads().values().sum::<usize>() > before.values().sum::<usize>());
    let tenants = [house.tenant("acme"), house.tenant("beta")];
    let caller = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let calls: Vec<_> = (0..40)
                .map(|number| {
                    let tenant = tenants[number % 2].clone();
                    tokio::spawn(async move { infer(&tenant, "slow", 1, 1.0).await })
                })
                .collect();
            let mut codes = Vec::new();
            for call in calls {
                codes.push(call.await.unwrap().map(|_| ()).map_err(|error| error.code()));
            }
            codes
        })
    });
    while house.runtime.inflight() < 40 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = house.stop();
    assert_eq!(report.unfinished, 0);
    let codes = caller.join().unwrap();
    assert!(codes.iter().all(|code| code.is_ok() || *code == Err(Code::Unavailable)), "{codes:?}");
    assert_eq!(codes.iter().filter(|code| code.is_ok()).count(), 40, "an admitted request was lost");
    assert_eq!(threads(), before);
}
