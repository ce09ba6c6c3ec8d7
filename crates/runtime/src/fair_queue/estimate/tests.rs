//! Tests of the estimator: the median, each fallback in its order, and the bound on its size.

use super::*;
use proptest::prelude::*;

const PLAN: PlanKey = PlanKey(1);

fn cost(estimator: &Estimator, plan: PlanKey, rows: u32) -> u64 {
    estimator.curve(plan, 32).cost(rows)
}

#[test]
fn one_slow_batch_does_not_move_the_estimate() {
    let mut estimator = Estimator::new(5);
    for nanos in [100, 100, 100, 9_000_000, 100] {
        estimator.record(PLAN, 1, nanos);
    }
    assert_eq!(cost(&estimator, PLAN, 1), 100);
}

#[test]
fn a_lasting_change_is_followed_within_half_a_window() {
    let mut estimator = Estimator::new(5);
    for nanos in [100; 20].into_iter().chain([700; ESTIMATE_WINDOW / 2 + 1]) {
        estimator.record(PLAN, 1, nanos);
    }
    assert_eq!(cost(&estimator, PLAN, 1), 700);
}

#[test]
fn rows_between_two_buckets_cost_what_the_larger_one_costs() {
    let mut estimator = Estimator::new(5);
    estimator.record(PLAN, 3, 400);
    estimator.record(PLAN, 5, 900);
    assert_eq!([3, 4, 5, 8].map(|rows| cost(&estimator, PLAN, rows)), [400, 400, 900, 900]);
}

#[test]
fn unknown_buckets_are_scaled_from_the_next_smaller_one() {
    let mut estimator = Estimator::new(5);
    estimator.record(PLAN, 2, 100);
    assert_eq!([2, 4, 7, 32].map(|rows| cost(&estimator, PLAN, rows)), [100, 200, 400, 1600]);
    let odd = estimator.curve(PLAN, 24);
    assert_eq!((odd.bucket_rows(17), odd.cost(17)), (24, 1200), "a bucket is no larger than the largest batch");
}

#[test]
fn without_a_smaller_bucket_the_next_larger_bounds_it_from_above() {
    let mut estimator = Estimator::new(5);
    estimator.record(PLAN, 8, 800);
    estimator.record(PlanKey(2), 1, 50_000);
    assert_eq!([1, 4, 8].map(|rows| cost(&estimator, PLAN, rows)), [800, 800, 800]);
}

#[test]
fn an_unknown_plan_counts_as_the_longest_on_the_shard() {
    let mut estimator = Estimator::new(5);
    assert_eq!(cost(&estimator, PLAN, 1), 5, "nothing measured at all");
    estimator.record(PlanKey(2), 1, 300);
    estimator.record(PlanKey(3), 4, 700);
    assert_eq!(cost(&estimator, PLAN, 1), 700);
    for _ in 0..ESTIMATE_WINDOW {
        estimator.record(PlanKey(3), 4, 200);
    }
    assert_eq!(cost(&estimator, PLAN, 1), 300, "a median that no bucket has any more was kept");
}

#[test]
fn shapes_that_callers_invent_do_not_grow_it_and_used_plans_stay() {
    let mut estimator = Estimator::new(5);
    for invented in 10..10 * ESTIMATE_PLANS as u64 {
        estimator.record(PlanKey(invented), 1, invented);
        estimator.record(PLAN, 1, 7);
    }
    assert_eq!(cost(&estimator, PLAN, 1), 7);
    assert!(estimator.recent.len() + estimator.older.len() <= 2 * ESTIMATE_PLANS);
    let known: usize = estimator.medians.values().sum();
    assert_eq!(known, estimator.recent.len() + estimator.older.len());
}

#[test]
fn rows_are_worked_off_in_batches_that_fit_the_slice() {
    let mut estimator = Estimator::new(5);
    for (rows, nanos) in [(1, 100), (2, 150), (4, 250), (8, 450)] {
        estimator.record(PLAN, rows, nanos);
    }
    let curve = estimator.curve(PLAN, 8);
    assert_eq!((curve.rows_within(300), curve.rows_within(50), curve.rows_within(1000)), (4, 1, 8));
    assert_eq!(curve.backlog(10, 300), 2 * 250 + 150);
}

proptest! {
    #[test]
    fn costs_never_fall_as_rows_are_added(
        measured in proptest::collection::vec((1u32..70, 1u64..1_000_000), 0..40),
        max_batch in 1u32..70,
    ) {
        let mut estimator = Estimator::new(5_000);
        for (rows, nanos) in measured {
            estimator.record(PLAN, rows, nanos);
        }
        let curve = estimator.curve(PLAN, max_batch);
        for rows in 1..=max_batch {
            prop_assert!(curve.cost(rows) >= curve.cost(rows - 1));
            prop_assert!((rows..=max_batch).contains(&curve.bucket_rows(rows)));
        }
    }
}
