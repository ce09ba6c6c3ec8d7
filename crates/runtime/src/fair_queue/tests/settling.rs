//! What happens to tags when batches end, tenants change or leave, and the queue falls idle.

use super::*;

fn measured(millis: u64) -> Settlement<'static> {
    Settlement::Measured(Duration::from_millis(millis))
}

#[test]
fn the_measured_time_is_shared_by_rows() {
    let mut bench = Bench::new();
    bench.push(0, "a", rows(3));
    bench.push(1, "b", rows(1));
    let batch = bench.form().unwrap();
    let shares = bench.queue.complete(batch.ticket, measured(8));
    let of = |tenant: u32| shares.iter().find(|share| share.tenant == TenantSlot(tenant)).unwrap().device.as_millis();
    assert_eq!((of(0), of(1)), (6, 2));
    assert_eq!((bench.finish(0), bench.finish(1)), (6, 2));
    assert_eq!(bench.queue.tenant_use(TenantSlot(0)).unwrap().device, Duration::from_millis(6));
}

#[test]
fn a_debt_outlives_idling() {
    let mut bench = Bench::new();
    bench.push(0, "a", rows(1));
    let slow = bench.form().unwrap();
    for _ in 0..20 {
        bench.push(1, "b", rows(5));
    }
    bench.queue.complete(slow.ticket, measured(40));
    bench.push(0, "a", other_plan);
    let order: Vec<_> = (0..6).flat_map(|_| bench.run()).collect();
    assert_eq!(order, ["b", "b", "b", "b", "b", "a"], "tenant 1 first catches up with the 40 ms that tenant 0 used");
}

#[test]
fn what_was_paid_too_much_comes_back_but_not_from_the_past() {
    let mut bench = Bench::new();
    bench.push(0, "a", rows(8));
    let batch = bench.form().unwrap();
    assert_eq!(bench.finish(0), 8);
    for _ in 0..3 {
        bench.push(1, "b", rows(5));
    }
    let others: Vec<_> = (0..2).map(|_| bench.form().unwrap()).collect();
    assert_eq!(bench.virtual_ms(), 8, "tenant 1 paid 8 ms for its first batch and led again");
    let shares = bench.queue.complete(batch.ticket, measured(1));
    assert_eq!(bench.finish(0), 8, "the tag would have fallen below V");
    assert_eq!(shares[0].forgone, Duration::from_millis(7));
    for batch in others {
        let shares = bench.queue.complete(batch.ticket, measured(6));
        assert_eq!(shares[0].forgone, Duration::ZERO);
    }
    assert_eq!(bench.finish(1), 12, "a backlogged tenant gets back what it paid too much");
}

#[test]
fn innocents_bear_their_good_run_only_and_failures_teach_no_estimate() {
    let mut bench = Bench::new();
    bench.push(0, "guilty", rows(1));
    bench.push(1, "innocent", rows(1));
    let batch = bench.form().unwrap();
    let millis = Duration::from_millis;
    let parts = [(TenantSlot(0), millis(900)), (TenantSlot(1), millis(1)), (TenantSlot(0), millis(100))];
    let shares = bench.queue.complete(batch.ticket, Settlement::PerTenant(&parts));
    assert_eq!(shares.iter().map(|share| share.device.as_millis()).collect::<Vec<_>>(), [1000, 1]);
    assert_eq!((bench.finish(0), bench.finish(1)), (1000, 1));
    bench.push(2, "c", rows(2));
    assert_eq!(bench.form().unwrap().predicted, millis(2));
}

#[test]
fn virtual_time_catches_up_with_the_furthest_tag_when_the_queue_falls_idle() {
    let mut bench = Bench::new();
    bench.push(0, "a", rows(1));
    bench.push(1, "b", other_plan);
    let (first, second) = (bench.form().unwrap(), bench.form().unwrap());
    bench.queue.complete(first.ticket, measured(30));
    assert_eq!(bench.virtual_ms(), 0, "one batch is still running");
    bench.queue.complete(second.ticket, measured(2));
    assert_eq!(bench.virtual_ms(), 30);
}

#[test]
fn a_changed_weight_keeps_the_device_time_taken_ahead() {
    let mut bench = Bench::new();
    bench.push(0, "a", rows(8));
    let batch = bench.form().unwrap();
    bench.push(1, "b", rows(5));
    bench.push(0, "a", |entry| {
        other_plan(entry);
        entry.weight = Weight::new(4.0);
    });
    assert_eq!(bench.finish(0), 2, "8 ms over 4");
    bench.queue.complete(batch.ticket, measured(16));
    assert_eq!(bench.finish(0), 4);
    bench.queue.set_weight(TenantSlot(0), Weight::new(0.5));
    assert_eq!(bench.finish(0), 32);
    assert_eq!((bench.run(), bench.run()), (vec!["b"], vec!["a"]));
}

#[test]
fn a_removed_tenant_gives_its_entries_back_and_the_next_in_its_slot_owes_nothing() {
    let mut bench = Bench::new();
    bench.push(0, "running", rows(1));
    let batch = bench.form().unwrap();
    bench.push(0, "a", |_| ());
    bench.push(0, "x", other_plan);
    bench.push(1, "b", |_| ());
    let mut returned = bench.queue.remove_tenant(TenantSlot(0));
    returned.sort_unstable();
    assert_eq!(returned, ["a", "x"]);
    assert_eq!(bench.queue.remove_tenant(TenantSlot(0)), Vec::<&str>::new());
    bench.push(0, "successor", |_| ());
    let shares = bench.queue.complete(batch.ticket, measured(500));
    assert_eq!(shares[0].device, Duration::from_millis(500), "the device time is still billed");
    assert_eq!(bench.finish(0), 0, "the successor pays for its predecessor");
    assert_eq!(bench.run(), ["successor", "b"]);
    assert_eq!(bench.queue.counts().queued, 0);
    assert_eq!(bench.queue.counts().backlog, Duration::ZERO);
}
