//! The hand-over of borrowed closures, by force: many posts, several posters, panics, and the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::*;

/// Adds 1 to each element of a fresh vector, in parts that whoever comes takes, and returns the sum.
fn count_in_parts(threads: &ComputeThreads, parts: usize) -> usize {
    let mut values = vec![0usize; parts * 3];
    let rest = Mutex::new(values.chunks_mut(3));
    let take = || {
        while let Some(part) = { rest.lock().next() } {
            part.iter_mut().for_each(|value| *value += 1);
        }
    };
    threads.run(&take, take);
    values.iter().sum()
}

#[test]
fn every_part_is_done_once_however_many_threads_there_are() {
    for count in 1..5 {
        let threads = ComputeThreads::start(count, &[]).unwrap();
        assert_eq!(threads.count(), count);
        for round in 0..2000 {
            // Sometimes the helpers are still looking, sometimes they have parked.
            if round % 500 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            assert_eq!(count_in_parts(&threads, round % 40), round % 40 * 3);
        }
    }
}

#[test]
fn several_runs_at_once_all_come_to_their_end() {
    let threads = ComputeThreads::start(3, &[]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope
                .spawn(|| (0..2000).for_each(|round| assert_eq!(count_in_parts(&threads, round % 20), round % 20 * 3)));
        }
    });
}

#[test]
fn a_run_within_a_run_computes_alone() {
    let threads = ComputeThreads::start(2, &[]).unwrap();
    let inner = threads.run(&|| (), || count_in_parts(&threads, 10));
    assert_eq!(inner, 30);
}

#[test]
fn helpers_do_take_part() {
    let threads = ComputeThreads::start(2, &[]).unwrap();
    let helped = AtomicUsize::new(0);
    let deadline = Instant::now() + Duration::from_secs(20);
    threads.run(
        &|| {
            helped.fetch_add(1, Ordering::Relaxed);
        },
        || {
            while helped.load(Ordering::Relaxed) == 0 && Instant::now() < deadline {
                std::thread::yield_now();
            }
        },
    );
    assert_eq!(helped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_anywhere_is_the_caller_s_and_the_threads_live_on() {
    let threads = ComputeThreads::start(2, &[]).unwrap();
    for helper_panics in [true, false, true] {
        let begun = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            threads.run(
                &|| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    assert!(!helper_panics, "in a helper");
                },
                || {
                    while begun.load(Ordering::Relaxed) == 0 {
                        std::thread::yield_now();
                    }
                    assert!(helper_panics, "in the caller");
                },
            );
        }));
        let message = *caught.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(message, if helper_panics { "in a helper" } else { "in the caller" });
        assert_eq!(count_in_parts(&threads, 100), 300);
    }
}
