//! What the fair queue promises, over random scenarios in virtual time: the fairness bound, work conservation, and that
//! priorities, cancellations and riders do nothing to other tenants. The simulator checks the rules of every single batch.

#[cfg(test)]
#[path = "fair_queue_properties/bound.rs"]
mod bound;
#[cfg(test)]
#[path = "fair_queue_properties/scenarios.rs"]
mod scenarios;
#[cfg(test)]
#[path = "fair_queue_properties/simulator.rs"]
mod simulator;

use bound::FairnessBound;
use proptest::prelude::*;
use scenarios::{backlog, exact_scenario, scenario};
use simulator::{PlanCost, Request, SLICE, Scenario, Simulator};

const MS: u64 = 1_000_000;

/// Runs a scenario; the queue's rules and the fairness bound are checked on the way.
fn check(scenario: &Scenario) -> FairnessBound {
    let mut simulator = Simulator::new(scenario);
    let mut bound = FairnessBound::new(scenario.weights.len());
    let mut virtual_time = simulator.queue.virtual_time();
    simulator.run(|state| {
        assert!(state.queue.virtual_time() >= virtual_time, "virtual time went back");
        virtual_time = state.queue.virtual_time();
        bound.observe(state);
    });
    bound
}

proptest! {
    #[test]
    fn backlogged_tenants_get_their_shares_within_the_bound(scenario in scenario()) {
        check(&scenario);
    }

    /// Every entry a batch of its own, of known cost: nothing is ever corrected, and the bound has no other term.
    #[test]
    fn with_exact_estimates_the_bound_needs_no_corrections(scenario in exact_scenario()) {
        check(&scenario);
        let mut simulator = Simulator::new(&scenario);
        simulator.run(|_| ());
        for account in &simulator.accounts {
            // Tags are read in whole nanoseconds of device time.
            prop_assert!(account.worst_correction <= 1.0 && account.forgone <= 1.0, "{account:?}");
        }
    }

    #[test]
    fn priorities_change_nothing_for_other_tenants(
        requests in proptest::collection::vec((0usize..3, 0u64..3 * MS, 0u32..4), 1..120),
    ) {
        let requests = requests.iter().map(|(tenant, gap, priority)| (*tenant, *gap, *priority));
        let plain = alike(requests.clone().map(|(tenant, gap, _)| (tenant, gap, 0)));
        let urgent = alike(requests.map(|(tenant, gap, priority)| (tenant, gap, if tenant == 0 { priority } else { 0 })));
        prop_assert_eq!(tenants_in_order(&plain), tenants_in_order(&urgent));
    }

    #[test]
    fn who_leaves_before_dispatch_changes_nothing_for_anyone(
        requests in proptest::collection::vec((0usize..3, 0u64..3 * MS, proptest::bool::ANY), 1..120),
    ) {
        // Each that leaves comes just ahead of one that stays: behind it, it would keep its tenant waiting a moment longer, which
        // may decide a tie.
        let stay = alike(requests.iter().map(|(tenant, gap, _)| (*tenant, *gap, 0)));
        let with_leaver = |(request, (_, _, doubled)): (&Request, &(usize, u64, bool))| {
            let leaver = doubled.then(|| Request { leaves: request.arrives, ..request.clone() });
            leaver.into_iter().chain([request.clone()])
        };
        let with_leavers = stay.requests.iter().zip(&requests).flat_map(with_leaver).collect();
        let with_leavers = Scenario { requests: with_leavers, ..stay.clone() };
        prop_assert_eq!(tenants_in_order(&stay), tenants_in_order(&with_leavers));
    }
}

/// Requests of one row that take 2 ms each and cannot share a batch: (tenant, gap to the one before, priority).
fn alike(requests: impl Iterator<Item = (usize, u64, u32)>) -> Scenario {
    let mut arrives = 0;
    let request = |(tenant, gap, priority)| {
        arrives += gap;
        Request { tenant, plan: 0, rows: 1, priority, arrives, leaves: u64::MAX }
    };
    Scenario {
        weights: vec![1.0, 2.0, 0.5],
        plans: vec![PlanCost { base: MS, per_row: MS, max_batch: 1, estimate_factor: 1.0 }],
        requests: requests.map(request).collect(),
        workers: 1,
        noise: vec![1.0],
    }
}

fn tenants_in_order(scenario: &Scenario) -> Vec<usize> {
    let mut simulator = Simulator::new(scenario);
    simulator.run(|_| ());
    simulator.dispatched.iter().flatten().map(|request| scenario.requests[*request].tenant).collect()
}

/// A victim that asks for 30 % of the device in requests of 1 ms, beside an aggressor that always has ten times as much
/// queued, in requests of 4 ms.
#[test]
fn a_victim_beside_a_tenfold_aggressor_gets_all_it_asks_for() {
    let mut scenario = backlog(&[1.0, 1.0], &[(1, 0), (4, 0)], 0);
    let victim = (0..300).map(|number| request(0, 0, number * 10 * MS / 3));
    let aggressor = (0..750).map(|number| request(1, 1, number * 4 * MS / 3));
    scenario.requests = victim.chain(aggressor).collect();
    let mut simulator = Simulator::new(&scenario);
    let (mut victim_served, mut served) = (0.0, 0.0);
    simulator.run(|state| {
        if state.now <= 1_000 * MS {
            (victim_served, served) = (state.accounts[0].served, state.accounts[0].served + state.accounts[1].served);
        }
    });
    assert!((995.0..=1000.0).contains(&(served / MS as f64)), "the device was busy {served} ns of a second");
    assert!(
        (295.0..=300.0).contains(&(victim_served / MS as f64)),
        "the victim got {victim_served} ns of the 300 ms it asked for"
    );
    let worst = simulator.accounts[0].worst_latency;
    assert!(worst <= 6 * MS, "a request of 1 ms took {worst} ns: more than itself and what was running");
}

/// Both always have work, one in requests four times as long: over seconds each gets its share to within two slices.
#[test]
fn two_backlogged_tenants_split_the_device_by_weight_whatever_their_requests_look_like() {
    for (weights, share) in
        [([1.0, 1.0], 0.5), ([3.0, 1.0], 0.75), ([0.01, 0.03], 0.25), ([1000.0, 10.0], 100.0 / 101.0)]
    {
        let scenario = backlog(&weights, &[(1, 0), (4, 0)], 4_000);
        assert!(check(&scenario).compared > 1_000, "the bound was never put to the test");
        let mut simulator = Simulator::new(&scenario);
        let mut served = [0.0; 2];
        simulator.run(|state| {
            if (0..2).all(|tenant| state.is_backlogged(tenant)) {
                served = [state.accounts[0].served, state.accounts[1].served];
            }
        });
        let (all, slack) = (served[0] + served[1], 2.0 * SLICE as f64);
        assert!(all > 3_000.0 * MS as f64, "both were backlogged for {all} ns only");
        assert!((served[0] - share * all).abs() <= slack, "weights {weights:?}: {served:?}");
    }
}

fn request(tenant: usize, plan: usize, arrives: u64) -> Request {
    Request { tenant, plan, rows: 1, priority: 0, arrives, leaves: u64::MAX }
}
