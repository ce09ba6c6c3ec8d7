//! Requests through a whole house, in process: what goes in comes out, on the caller's loop and on the tenant's, alone and in
//! batches that mix tenants.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use insula_api::RequestFormat;
use insula_core::Code;
use insula_exec::CpuDevice;
use insula_testkit::house::{House, document, infer, infer_with, send};

#[tokio::test]
async fn a_small_and_a_large_body_come_back_as_they_were() {
    let house = House::new(CpuDevice::new(), &["acme"]);
    let acme = house.tenant("acme");
    let small: Vec<f32> = (0..16).map(|value| value as f32 - 0.5).collect();
    assert_eq!(infer_with(&acme, "identity_fp32", &small, |decode| decode).await.unwrap(), small);
    // 32 rows in JSON are well above what is decoded on the caller's loop
    let numbers: Vec<String> = (0..512).map(|value| format!("{value}.25")).collect();
    let body = format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[32,16],"datatype":"FP32","data":[{}]}}],"id":"{}"}}"#,
        numbers.join(","),
        "x".repeat(200)
    );
    let padded = format!("{body}{}", " ".repeat(16 << 10));
    let answer = send(&acme, "identity_fp32", padded.as_bytes(), RequestFormat::Json, |decode| decode).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("511.25"), "{}", &answer[..200.min(answer.len())]);
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_mix_tenants_give_each_its_own_rows() {
    let house = House::new(CpuDevice::new(), &["acme", "beta", "gamma"]);
    let mut calls = Vec::new();
    for number in 0..300usize {
        let tenant = house.tenant(["acme", "beta", "gamma"][number % 3]);
        calls.push(tokio::spawn(async move {
            let rows = 1 + number % 5;
            let value = number as f32;
            (
                infer(&tenant, "versions", 0, 0.0).await.is_err(),
                rows,
                value,
                infer(&tenant, "identity_fp32", rows, value).await,
            )
        }));
    }
    for call in calls {
        let (refused, rows, value, answer) = call.await.unwrap();
        assert!(refused, "a request without rows was answered");
        assert_eq!(answer.unwrap(), vec![value; rows * 16]);
    }
    house.stop();
}

#[tokio::test]
async fn the_same_row_gives_the_same_bits_alone_and_in_any_batch() {
    let house = House::new(CpuDevice::new(), &["acme"]);
    let acme = house.tenant("acme");
    let row: Vec<f32> = (0..16).map(|value| 0.37 * value as f32 - 2.0).collect();
    let alone = infer_with(&acme, "slow", &row, |decode| decode).await.unwrap();
    for rows in [2usize, 7] {
        let together: Vec<f32> = row.iter().copied().cycle().take(rows * 16).collect();
        let answer = infer_with(&acme, "slow", &together, |decode| decode).await.unwrap();
        for (index, part) in answer.chunks_exact(16).enumerate() {
            let same = part.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "row {index} of {rows} differs");
        }
    }
    house.stop();
}

#[tokio::test]
async fn a_tenant_at_its_limits_is_told_which_and_its_neighbour_notices_nothing() {
    let documents =
        [document("small", "concurrency = 1\nmemory = \"2MiB\"\nrequest_bytes = \"2MiB\"\n"), document("acme", "")];
    let house = House::with_documents(CpuDevice::new(), &documents).unwrap();
    let (small, acme) = (house.tenant("small"), house.tenant("acme"));
    let first = small.admit("identity_fp32", None, Some(100)).unwrap();
    let refused = small.admit("identity_fp32", None, Some(100)).unwrap_err();
    assert_eq!((refused.code(), refused.refusal().unwrap().limit), (Code::QuotaExceeded, "concurrency"));
    let big = first.body(Some(2 << 20), None).unwrap();
    let refused = first.body(Some(2 << 20), None).unwrap_err();
    assert_eq!((refused.code(), refused.refusal().unwrap().limit), (Code::QuotaExceeded, "memory"));
    assert_eq!(infer(&acme, "identity_fp32", 1, 1.0).await.unwrap(), [1.0; 16]);
    drop((big, first));
    assert_eq!(infer(&small, "identity_fp32", 1, 2.0).await.unwrap(), [2.0; 16]);
    assert_eq!((small.inflight(), small.queued()), (0, 0));
    house.stop();
}

#[tokio::test]
async fn a_rate_is_spent_last_so_that_other_refusals_cost_no_token() {
    let documents = [document("slow", "requests_per_second = 0.001\nburst = 2\nconcurrency = 1\n")];
    let house = House::with_documents(CpuDevice::new(), &documents).unwrap();
    let slow = house.tenant("slow");
    let held = slow.admit("identity_fp32", None, None).unwrap();
    for _ in 0..10 {
        assert_eq!(slow.admit("identity_fp32", None, None).unwrap_err().refusal().unwrap().limit, "concurrency");
        assert_eq!(slow.admit("nope", None, None).unwrap_err().code(), Code::NotFound);
    }
    drop(held);
    assert!(slow.admit("identity_fp32", None, None).is_ok());
    let refused = slow.admit("identity_fp32", None, None).unwrap_err();
    assert_eq!(refused.refusal().unwrap().limit, "requests_per_second");
    house.stop();
}

#[tokio::test]
async fn the_highest_version_answers_and_a_named_one_exactly() {
    let house = House::new(CpuDevice::new(), &["acme"]);
    let acme = house.tenant("acme");
    assert_eq!(acme.model("versions", None).unwrap().version.number(), 10);
    assert_eq!(acme.model("versions", Some("2")).unwrap().version.number(), 2);
    for odd in ["3", "0", "-1", "latest", "1.0", "18446744073709551615"] {
        assert!(acme.model("versions", Some(odd)).is_err(), "{odd}");
    }
    house.stop();
}
