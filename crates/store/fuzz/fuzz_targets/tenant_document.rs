//! Any text as a tenant document: it is refused with faults on lines that exist, or accepted, and then what it says keeps
//! the promises of its types. cargo-fuzz runs it.
#![no_main]

use std::collections::HashSet;

use insula_store::TenantDocument;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match TenantDocument::parse(text) {
        Ok(document) => check(&document),
        Err(faults) => {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            assert!(!faults.faults().is_empty());
            assert!(faults.faults().iter().all(|fault| fault.line.is_none_or(|line| (1..=lines).contains(&line))));
        }
    }
});

fn check(document: &TenantDocument) {
    let quota = &document.quota;
    assert!((0.01..=1000.0).contains(&quota.weight));
    assert!(quota.requests_per_second.is_finite() && quota.requests_per_second > 0.0);
    assert!((1..=quota.memory).contains(&quota.request_bytes));
    assert!(quota.burst > 0 && quota.concurrency > 0 && quota.queue > 0 && !quota.timeout.is_zero());
    let ids: HashSet<_> = document.keys.iter().map(|key| &key.id).collect();
    let hashes: HashSet<_> = document.keys.iter().map(|key| key.sha256).collect();
    let names: HashSet<_> = document.models.iter().map(|model| &model.name).collect();
    assert_eq!((ids.len(), hashes.len()), (document.keys.len(), document.keys.len()));
    assert_eq!(names.len(), document.models.len());
}
