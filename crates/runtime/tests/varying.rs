//! Models whose inputs vary in more than their rows: plans are made for each class of requests, beside the serving threads, and
//! only the requests of that class wait for them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use insula_api::RequestFormat;
use insula_core::{Code, Error};
use insula_exec::CpuDevice;
use insula_runtime::tenant::TenantHandle;
use insula_testkit::house::{House, document, infer, send};
use insula_testkit::varying_model::{any_length, shape_from_values};

async fn upload(tenant: &TenantHandle, model: &str, file: Vec<u8>) {
    tenant.load_model(model, Some(vec![("file:1/model.onnx".into(), file.into())])).await.unwrap();
}

async fn ask(tenant: &TenantHandle, model: &str, body: String) -> Result<String, Error> {
    let answer = send(tenant, model, body.as_bytes(), RequestFormat::Json, |decode| decode).await?;
    Ok(String::from_utf8(answer).unwrap())
}

/// Sends `rows` rows of `length` values, all -1 but the last, which is `last`.
async fn ask_length(tenant: &TenantHandle, rows: usize, length: usize, last: f32) -> Result<String, Error> {
    let mut data = vec![-1.0; rows * length];
    data[rows * length - 1] = last;
    let body = format!(r#"{{"inputs":[{{"name":"x","shape":[{rows},{length}],"datatype":"FP32","data":{data:?}}}]}}"#);
    ask(tenant, "any_length", body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_any_size_are_answered_in_their_own_shape() {
    let house = House::new(CpuDevice::new(), &["acme", "beta"]);
    for tenant in ["acme", "beta"] {
        upload(&house.tenant(tenant), "any_length", any_length()).await;
    }
    let mut calls = Vec::new();
    for number in 0..60usize {
        let tenant = house.tenant(["acme", "beta"][number % 2]);
        let (rows, length) = (1 + number % 4, 1 + number % 3);
        calls.push(tokio::spawn(async move { (rows, length, ask_length(&tenant, rows, length, 7.5).await) }));
    }
    for call in calls {
        let (rows, length, answer) = call.await.unwrap();
        let answer = answer.unwrap();
        assert!(answer.contains(&format!(r#""shape":[{rows},{length}]"#)), "{answer}");
        assert!(answer.contains("7.5") && !answer.contains("-1"), "{answer}");
    }
    let (classes, bytes) = house.runtime.plan_cache();
    assert_eq!(classes, 6, "three lengths, and each tenant has a model of its own");
    assert!(bytes > 0);
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inputs_values_decide_the_shape_of_the_answer() {
    let house = House::new(CpuDevice::new(), &["acme"]);
    let acme = house.tenant("acme");
    upload(&acme, "reshape", shape_from_values()).await;
    let ask_shape = |shape: [i64; 2]| {
        let data: Vec<usize> = (0..12).collect();
        let body = format!(
            r#"{{"inputs":[{{"name":"x","shape":[12],"datatype":"FP32","data":{data:?}}},{{"name":"shape","shape":[2],"datatype":"INT64","data":{shape:?}}}]}}"#
        );
        ask(&acme, "reshape", body)
    };
    for (asked, given) in [([3, 4], "[3,4]"), ([6, -1], "[6,2]"), ([3, 4], "[3,4]"), ([1, 12], "[1,12]")] {
        assert!(ask_shape(asked).await.unwrap().contains(&format!(r#""shape":{given}"#)));
    }
    let refused = ask_shape([5, 5]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("`only`"), "{refused}");
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_fifth_plan_of_a_second_waits_and_only_its_own_requests_wait() {
    let house = House::new(CpuDevice::new(), &["acme", "beta"]);
    let (acme, beta) = (house.tenant("acme"), house.tenant("beta"));
    upload(&acme, "any_length", any_length()).await;
    upload(&beta, "any_length", any_length()).await;
    let started = Instant::now();
    let calls: Vec<_> = (1..=8usize)
        .map(|length| {
            let acme = acme.clone();
            tokio::spawn(async move { ask_length(&acme, 1, length, 1.0).await.unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    // a plan that is there and another tenant's first plan wait for nothing: they are back before the eighth class is planned
    infer(&acme, "identity_fp32", 1, 0.5).await.unwrap();
    ask_length(&beta, 1, 3, 1.0).await.unwrap();
    assert!(calls.iter().any(|call| !call.is_finished()), "the eighth plan did not wait");
    for call in calls {
        call.await.unwrap();
    }
    assert!(started.elapsed() >= Duration::from_millis(990), "eight plans took {:?}", started.elapsed());
    house.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_for_a_plan_keeps_its_deadline_and_frees_its_place() {
    let house = House::with_documents(CpuDevice::new(), &[document("acme", "timeout_ms = 300\n")]).unwrap();
    let acme = house.tenant("acme");
    upload(&acme, "any_length", any_length()).await;
    let calls: Vec<_> = (1..=30usize)
        .map(|length| {
            let acme = acme.clone();
            tokio::spawn(async move { ask_length(&acme, 1, length, 1.0).await })
        })
        .collect();
    let mut late = 0;
    for call in calls {
        if let Err(error) = call.await.unwrap() {
            assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
            late += 1;
        }
    }
    assert!(late >= 20, "{late} of 30 were late, at most 6 can be planned in 300 ms");
    // what expired is not planned for: its places come back though nobody asks again
    let until = Instant::now() + Duration::from_secs(5);
    while acme.queued() > 0 || acme.inflight() > 0 {
        assert!(Instant::now() < until, "{} still hold a place", acme.queued());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    house.stop();
}
