//! What a panic under the lock leaves: the entry in hand fails, tags and FIFOs stay, the rest is derived again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// Forms a batch while claiming `bomb` panics; what was claimed before it becomes a batch all the same.
fn form_with_bomb(bench: &mut Bench, bomb: &str) -> (Option<&'static str>, Formed<&'static str, &'static str>) {
    let mut forming = Forming::default();
    let mut claim = |item| {
        assert_ne!(item, bomb, "the bomb went off");
        Ok(item)
    };
    let queue = &mut bench.queue;
    let outcome = catch_unwind(AssertUnwindSafe(|| queue.form_into(&mut forming, Nanos(0), &mut claim)));
    assert!(outcome.is_err());
    let guilty = bench.queue.rebuild();
    (guilty, bench.queue.seal(forming))
}

#[test]
fn a_panic_while_claiming_fails_that_entry_alone() {
    let mut bench = Bench::new();
    for item in ["a1", "bomb", "a2"] {
        bench.push(0, item, |_| ());
    }
    bench.push(1, "x", |entry| {
        other_plan(entry);
        entry.arrived = Nanos(0);
    });
    let (guilty, formed) = form_with_bomb(&mut bench, "bomb");
    assert_eq!(guilty, None, "the panic consumed it");
    assert_eq!(items(&formed.batch.as_ref().unwrap().entries), ["a1"]);
    assert_eq!(bench.finish(0), 1, "the tags were kept");
    let counts = bench.queue.counts();
    assert_eq!((counts.queued, counts.waiting_tenants, counts.running), (2, 2, 1));
    assert_eq!((bench.run(), bench.run(), bench.run()), (vec!["x"], vec!["a2"], vec![]));
}

#[test]
fn a_panic_on_the_leader_leaves_no_batch_and_a_working_queue() {
    let mut bench = Bench::new();
    bench.push(0, "a", |_| ());
    bench.push(1, "bomb", |_| ());
    let (_, formed) = form_with_bomb(&mut bench, "bomb");
    assert!(formed.batch.is_none());
    assert_eq!(bench.run(), ["a"]);
    assert_eq!(bench.queue.counts(), FairQueueCounts { virtual_nanos: MS, ..FairQueueCounts::default() });
}

#[test]
fn an_entry_in_hand_that_is_still_queued_is_taken_out() {
    let mut bench = Bench::new();
    for item in ["a1", "a2", "a3"] {
        bench.push(0, item, |_| ());
    }
    let sequence = bench.queue.tenants[0].as_ref().unwrap().head(PLAN).unwrap().turn.sequence;
    bench.queue.in_hand = Some(InHand { tenant: TenantSlot(0), plan: PLAN, sequence });
    assert_eq!(bench.queue.rebuild(), Some("a1"));
    assert_eq!(bench.queue.rebuild(), None);
    assert_eq!(bench.run(), ["a2", "a3"]);
}

#[test]
fn starting_over_hands_back_everything_and_old_batches_may_still_end() {
    let mut bench = Bench::new();
    bench.push(0, "running", |_| ());
    let batch = bench.form().unwrap();
    bench.push(0, "a", |_| ());
    bench.push(1, "b", other_plan);
    let mut returned = bench.queue.start_over();
    returned.sort_unstable();
    assert_eq!(returned, ["a", "b"]);
    bench.push(0, "next", |_| ());
    let next = bench.form().unwrap();
    bench.queue.complete(batch.ticket, Settlement::Measured(Duration::from_millis(50)));
    assert_eq!(bench.queue.counts().running, 1);
    assert_eq!(bench.finish(0), 1);
    bench.queue.complete(next.ticket, Settlement::Measured(Duration::from_millis(1)));
    assert_eq!(bench.queue.counts().running, 0);
}
