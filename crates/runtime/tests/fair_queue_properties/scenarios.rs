//! Random scenarios: who comes when with what, how long it truly takes and what was believed before.

use proptest::collection::vec;
use proptest::prelude::*;

use super::simulator::{PlanCost, Request, Scenario};

const MS: u64 = 1_000_000;
const MICROSECOND: u64 = 1_000;

/// 2 to 5 tenants of weights 1 to 100, bursts and pauses, 1 to 3 batches in flight, costs up to ten times off their
/// estimates either way, some callers that leave, some plans longer than a slice.
pub fn scenario() -> impl Strategy<Value = Scenario> {
    let plans = vec(
        (100 * MICROSECOND..3 * MS, 20 * MICROSECOND..800 * MICROSECOND, prop_oneof![Just(1u32), Just(8), Just(24)]),
        1..4,
    );
    let factors = vec(prop_oneof![Just(0.1), Just(1.0), Just(10.0), 0.1f64..10.0], 4);
    let long = prop_oneof![3 => Just(None), 1 => (8 * MS..30 * MS).prop_map(Some)];
    let requests = vec((0usize..5, 0usize..4, 1u32..9, 0u32..4, gap(), patience()), 1..250);
    let noise = prop_oneof![1 => Just(vec![1.0]), 2 => vec(0.1f64..10.0, 1..20)];
    (vec(1f64..100.0, 2..6), plans, factors, long, requests, 1usize..4, noise).prop_map(
        |(weights, plans, factors, long, requests, workers, noise)| {
            let cost =
                |((base, per_row, max_batch), estimate_factor)| PlanCost { base, per_row, max_batch, estimate_factor };
            let mut plans: Vec<PlanCost> = plans.into_iter().zip(factors).map(cost).collect();
            if let Some(base) = long {
                plans[0].base = base;
            }
            let requests = arrivals(requests, weights.len(), &plans);
            Scenario { weights, plans, requests, workers, noise }
        },
    )
}

/// Known costs of at most a slice, one row a batch.
pub fn exact_scenario() -> impl Strategy<Value = Scenario> {
    let plans = vec(100 * MICROSECOND..4 * MS, 1..4);
    let requests = vec((0usize..4, 0usize..4, Just(1u32), 0u32..3, gap(), patience()), 1..300);
    (vec(1f64..100.0, 2..5), plans, requests, 1usize..4).prop_map(|(weights, plans, requests, workers)| {
        let cost = |base| PlanCost { base, per_row: MICROSECOND, max_batch: 1, estimate_factor: 1.0 };
        let plans: Vec<PlanCost> = plans.into_iter().map(cost).collect();
        let requests = arrivals(requests, weights.len(), &plans);
        Scenario { weights, plans, requests, workers, noise: vec![1.0] }
    })
}

/// `count` requests of each tenant at once; tenant i's take (base, per row) of `costs[i]` ms and share no batch.
pub fn backlog(weights: &[f64], costs: &[(u64, u64)], count: usize) -> Scenario {
    let plan = |(base, per_row): &(u64, u64)| PlanCost {
        base: base * MS,
        per_row: per_row * MS,
        max_batch: 1,
        estimate_factor: 1.0,
    };
    let request = |tenant| Request { tenant, plan: tenant, rows: 1, priority: 0, arrives: 0, leaves: u64::MAX };
    Scenario {
        weights: weights.to_vec(),
        plans: costs.iter().map(plan).collect(),
        requests: (0..weights.len()).flat_map(|tenant| vec![request(tenant); count]).collect(),
        workers: 1,
        noise: vec![1.0],
    }
}

/// The time since the request before: mostly more come than a device can run, now and then everything is worked off.
fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..MICROSECOND, 20 => 0..MS, 1 => 20 * MS..200 * MS]
}

/// How long a caller waits.
fn patience() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(u64::MAX), 1 => 0..20 * MS]
}

type Draft = (usize, usize, u32, u32, u64, u64);

fn arrivals(drafts: Vec<Draft>, tenants: usize, plans: &[PlanCost]) -> Vec<Request> {
    let mut arrives = 0;
    let request = |(tenant, plan, rows, priority, gap, patience): Draft| {
        arrives += gap;
        let plan = plan % plans.len();
        let rows = rows.min(plans[plan].max_batch);
        Request { tenant: tenant % tenants, plan, rows, priority, arrives, leaves: arrives.saturating_add(patience) }
    };
    drafts.into_iter().map(request).collect()
}
