//! Who leads a batch, who rides, who fills padding, and what is dropped or held back on the way.

use super::*;
use crate::fair_queue::constants::DROPS_AT_ONCE;

#[test]
fn the_smallest_start_tag_leads_and_tenants_alternate() {
    let mut bench = Bench::new();
    for item in ["a1", "a2", "a3"] {
        bench.push(0, item, rows(5));
    }
    for item in ["b1", "b2", "b3"] {
        bench.push(1, item, rows(5));
    }
    let order: Vec<_> = std::iter::from_fn(|| Some(bench.run()).filter(|batch| !batch.is_empty())).flatten().collect();
    assert_eq!(
        order,
        ["b1", "a1", "b2", "a2", "b3", "a3"],
        "the tenant that came last goes first, then they alternate"
    );
}

#[test]
fn a_tenant_that_was_idle_has_saved_nothing_up() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.push(0, "a", rows(5));
    }
    (0..10).for_each(|_| assert_eq!(bench.run(), ["a"]));
    for _ in 0..10 {
        bench.push(1, "b", rows(5));
    }
    let order: Vec<_> = (0..8).flat_map(|_| bench.run()).collect();
    assert_eq!(order, ["b", "b", "a", "b", "a", "b", "a", "b"], "it starts where the batch before it started");
}

#[test]
fn twice_the_weight_is_served_twice_as_often() {
    let mut bench = Bench::new();
    for _ in 0..30 {
        bench.push(0, "a", rows(5));
        bench.push(1, "b", |entry| {
            rows(5)(entry);
            entry.weight = Weight::new(2.0);
        });
    }
    let order: Vec<_> = (0..30).flat_map(|_| bench.run()).collect();
    assert_eq!(order.iter().filter(|item| **item == "b").count(), 20);
}

#[test]
fn priority_then_age_orders_a_tenants_own_entries_and_no_others() {
    let mut bench = Bench::new();
    let entry = |count, priority| {
        move |entry: &mut Entry<&'static str>| {
            rows(count)(entry);
            entry.priority = priority;
        }
    };
    bench.push(0, "old", entry(5, 0));
    bench.push(0, "minor", entry(5, 9));
    bench.push(0, "urgent", entry(5, 1));
    bench.push(0, "urgent elsewhere", |e| {
        entry(5, 1)(e);
        other_plan(e);
    });
    bench.push(1, "plain", entry(5, 0));
    let order: Vec<_> = (0..5).flat_map(|_| bench.run()).collect();
    assert_eq!(order, ["plain", "urgent", "urgent elsewhere", "minor", "old"]);
}

#[test]
fn a_batch_of_several_stays_within_the_slice_even_for_a_tenant_alone() {
    let mut bench = Bench::new();
    for _ in 0..8 {
        bench.push(0, "a", |_| ());
    }
    let batch = bench.form().unwrap();
    assert_eq!((batch.rows, batch.bucket_rows, batch.predicted), (4, 4, Duration::from_millis(4)));
}

#[test]
fn an_entry_longer_than_the_slice_runs_and_takes_others_along_in_its_bucket() {
    let mut bench = Bench::new();
    bench.push(0, "long", rows(7));
    bench.push(1, "short", |entry| {
        entry.arrived = Nanos(0);
    });
    bench.push(2, "other", other_plan);
    bench.push(0, "long", rows(7));
    assert_eq!(bench.run(), ["other"]);
    let batch = bench.form().unwrap();
    assert_eq!((items(&batch.entries), batch.predicted), (vec!["long", "short"], Duration::from_millis(8)));
}

#[test]
fn only_the_same_plan_shares_a_batch() {
    let mut bench = Bench::new();
    bench.push(0, "x1", other_plan);
    bench.push(0, "a1", |_| ());
    bench.push(1, "b1", |_| ());
    bench.push(1, "x2", other_plan);
    assert_eq!(bench.run(), ["b1", "a1"]);
    let mut rest = bench.run();
    rest.sort_unstable();
    assert_eq!(rest, ["x1", "x2"]);
}

#[test]
fn riders_pay_what_they_add_and_never_move_virtual_time() {
    let mut bench = Bench::new();
    bench.push(0, "a", rows(2));
    bench.push(1, "b", rows(1));
    bench.push(1, "b", rows(1));
    let batch = bench.form().unwrap();
    assert_eq!(items(&batch.entries), ["b", "a", "b"]);
    assert_eq!((bench.finish(0), bench.finish(1)), (3, 1), "b leads for 1 ms, a widens the bucket by 3 ms, b fits it");
    assert_eq!(bench.virtual_ms(), 0);
}

#[test]
fn a_tenant_far_ahead_gets_only_padding_and_its_tag_stays() {
    let mut bench = Bench::new();
    // Tenant 0 runs 20 ms ahead of V, which tenant 1 keeps where it is.
    bench.push(1, "b1", |entry| {
        other_plan(entry);
        rows(8)(entry);
    });
    let running = bench.form().unwrap();
    bench.push(0, "a", rows(1));
    let ahead = bench.form().unwrap();
    bench.queue.complete(ahead.ticket, Settlement::Measured(Duration::from_millis(30)));
    bench.push(1, "b2", rows(3));
    for _ in 0..3 {
        bench.push(0, "a", |_| ());
    }
    let before = bench.finish(0);
    let batch = bench.form().unwrap();
    assert_eq!(items(&batch.entries), ["b2", "a"], "one row was left of the bucket of four");
    assert_eq!(batch.entries.iter().map(|entry| entry.free).collect::<Vec<_>>(), [false, true]);
    assert_eq!(bench.finish(0), before);
    let shares = bench.queue.complete(batch.ticket, Settlement::Measured(Duration::from_millis(4)));
    assert_eq!(shares.iter().map(|share| share.tenant).collect::<Vec<_>>(), [TenantSlot(1)], "free rows bear nothing");
    assert_eq!(bench.queue.tenant_use(TenantSlot(0)).unwrap().free_rows, 1);
    assert_eq!(bench.queue.counts().free_rows, 1);
    bench.queue.complete(running.ticket, Settlement::Measured(Duration::from_millis(8)));
}

#[test]
fn dead_entries_leave_at_no_charge_and_move_nothing() {
    let mut bench = Bench::new();
    for item in ["dead", "dead", "a"] {
        bench.push(0, item, |_| ());
    }
    bench.push(1, "dead", |_| ());
    let formed = bench.queue.form_batch(Nanos(9), |item| if item == "dead" { Err(item) } else { Ok(item) });
    assert_eq!(formed.dead.len(), 3);
    assert_eq!(items(&formed.batch.unwrap().entries), ["a"]);
    assert_eq!((bench.finish(0), bench.finish(1), bench.virtual_ms()), (1, 0, 0));
    let counts = bench.queue.counts();
    assert_eq!((counts.queued, counts.waiting_tenants, counts.running), (0, 0, 1));
}

#[test]
fn a_flood_of_cancelled_entries_is_worked_off_in_bounded_steps() {
    let mut bench = Bench::new();
    for _ in 0..2 * DROPS_AT_ONCE + 3 {
        bench.push(0, "dead", |_| ());
    }
    bench.push(0, "a", |_| ());
    let mut steps = Vec::new();
    let batch = loop {
        let formed = bench.queue.form_batch(Nanos(0), |item| if item == "dead" { Err(item) } else { Ok(item) });
        steps.push((formed.dead.len(), formed.more));
        if let Some(batch) = formed.batch {
            break batch;
        }
    };
    assert_eq!(steps, [(DROPS_AT_ONCE, true), (DROPS_AT_ONCE, true), (3, false)]);
    assert_eq!(items(&batch.entries), ["a"]);
}

#[test]
fn strict_and_unmixed_tenants_share_no_batch_with_others() {
    let mut bench = Bench::new();
    bench.push(0, "strict", |entry| entry.unmixed = true);
    bench.push(0, "strict", |entry| entry.unmixed = true);
    bench.push(1, "b", |_| ());
    bench.push(2, "c", |_| ());
    assert_eq!(bench.run(), ["c", "b"]);
    bench.push(1, "b", |_| ());
    let mut sets = [bench.run(), bench.run()];
    sets.sort_unstable();
    assert_eq!(sets, [vec!["b"], vec!["strict", "strict"]]);
}

#[test]
fn a_guilty_tenant_runs_unmixed_until_its_time_is_over() {
    let mut bench = Bench::new();
    bench.push(0, "guilty", |_| ());
    bench.push(1, "b", |_| ());
    bench.queue.unmix(TenantSlot(0), PLAN, Nanos(100), Nanos(0));
    bench.queue.unmix(TenantSlot(0), PLAN, Nanos(50), Nanos(0));
    bench.now = 99;
    assert_eq!((bench.run(), bench.run()), (vec!["b"], vec!["guilty"]));
    bench.push(0, "guilty", |_| ());
    bench.push(1, "b", |_| ());
    bench.now = 100;
    assert_eq!(bench.run(), ["b", "guilty"]);
}

#[test]
fn a_batch_is_held_back_only_until_it_is_full_or_due() {
    let mut bench = Bench::with_delay(Duration::from_nanos(100));
    bench.push(0, "a", |_| ());
    let formed = bench.queue.form_batch(Nanos(50), Ok::<_, &str>);
    assert!(formed.batch.is_none());
    assert_eq!(formed.held_until, Some(Nanos(101)));
    bench.push(1, "full", |entry| {
        other_plan(entry);
        rows(4)(entry);
    });
    assert_eq!(bench.run(), ["full"], "whoever need not wait does not");
    bench.now = 101;
    assert_eq!(bench.run(), ["a"]);
    (0..4).for_each(|_| bench.push(0, "a", |_| ()));
    assert_eq!(bench.run(), ["a"; 4], "four rows fill what fits the slice");
}

#[test]
fn the_backlog_is_predicted_from_rows_and_shrinks_as_they_run() {
    let mut bench = Bench::new();
    (0..9).for_each(|_| bench.push(0, "a", |_| ()));
    let backlog = |bench: &Bench| bench.queue.counts().backlog.as_millis();
    assert_eq!(backlog(&bench), 9, "two batches of 4 ms and one of 1 ms");
    let batch = bench.form().unwrap();
    assert_eq!(backlog(&bench), 9, "running counts");
    bench.queue.complete(batch.ticket, Settlement::Measured(batch.predicted));
    assert_eq!(backlog(&bench), 5);
}
