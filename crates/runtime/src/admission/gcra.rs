//! The generic cell rate algorithm: a rate with a burst, exact, in one atomic word. It knows no tenant and takes the time
//! as an argument. Admission asks it last, so that a request refused by another limit costs no token.
//!
//! Source: ITU-T I.371, virtual scheduling form. The state is the theoretical arrival time of the next request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use insula_core::Nanos;

/// The theoretical arrival time counts sixteenths of a nanosecond, so that an interval is exact to 1 in 800,000 at
/// 20,000 requests/s and the word lasts 36 years.
const FRACTION: u64 = 16;

/// A rate limit in force: requests a second and how many may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    interval: u64,
    burst: u64,
}

impl Rate {
    /// A limit of `per_second` requests a second (more than 0) with `burst` at once (at least 1).
    pub fn new(per_second: f64, burst: u32) -> Rate {
        let interval = (1e9 * FRACTION as f64 / per_second.max(1e-6)).round();
        Rate { interval: (interval as u64).max(1), burst: u64::from(burst.max(1)) }
    }
}

/// The state of one rate limit.
#[derive(Debug, Default)]
pub struct Gcra {
    arrival: AtomicU64,
}

impl Gcra {
    /// Whether it would be the same if nothing had ever been taken.
    pub fn is_idle(&self, now: Nanos) -> bool {
        self.arrival.load(Ordering::Relaxed) <= now.0.saturating_mul(FRACTION)
    }

    /// Takes one request's token at `now`, or says how long to wait until one is there.
    pub fn take(&self, rate: Rate, now: Nanos) -> Result<(), Duration> {
        let now = now.0.saturating_mul(FRACTION);
        let depth = rate.interval.saturating_mul(rate.burst);
        let mut seen = self.arrival.load(Ordering::Relaxed);
        loop {
            let next = seen.max(now).saturating_add(rate.interval);
            let early = next.saturating_sub(now);
            if early > depth {
                return Err(Duration::from_nanos((early - depth).div_ceil(FRACTION)));
            }
            match self.arrival.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(found) => seen = found,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_burst_passes_at_once_and_the_next_waits_one_interval() {
        let (gcra, rate) = (Gcra::default(), Rate::new(10.0, 3));
        for _ in 0..3 {
            assert_eq!(gcra.take(rate, Nanos(0)), Ok(()));
        }
        assert_eq!(gcra.take(rate, Nanos(0)), Err(Duration::from_millis(100)));
        assert_eq!(gcra.take(rate, Nanos(SECOND / 10)), Ok(()));
    }

    #[test]
    fn idling_saves_no_more_than_the_burst() {
        let (gcra, rate) = (Gcra::default(), Rate::new(10.0, 3));
        let passed = (0..10).filter(|_| gcra.take(rate, Nanos(1000 * SECOND)).is_ok()).count();
        assert_eq!(passed, 3);
    }

    #[test]
    fn frequent_asking_loses_no_fraction_of_a_token() {
        let (gcra, rate) = (Gcra::default(), Rate::new(3.0, 1));
        let asked = (0..30 * 1000).map(|milli| Nanos(milli * 1_000_000));
        let passed = asked.filter(|now| gcra.take(rate, *now).is_ok()).count();
        assert!((90..=91).contains(&passed), "{passed} passed in 30 s at 3/s");
    }

    proptest! {
        #[test]
        fn no_window_admits_more_than_burst_and_rate_allow(
            per_second in 0.5f64..50_000.0, burst in 1u32..500, gaps in proptest::collection::vec(0u64..200_000_000, 1..300)
        ) {
            let (gcra, rate) = (Gcra::default(), Rate::new(per_second, burst));
            let (mut now, mut passed) = (0u64, Vec::new());
            for gap in gaps {
                now += gap;
                if gcra.take(rate, Nanos(now)).is_ok() {
                    passed.push(now);
                }
            }
            for (index, start) in passed.iter().enumerate() {
                let seconds = (now - start) as f64 / 1e9;
                let admitted = (passed.len() - index) as f64;
                prop_assert!(admitted <= f64::from(burst) + per_second * seconds + 1.0);
            }
        }

        #[test]
        fn a_retry_at_the_hinted_time_passes(per_second in 0.5f64..50_000.0, burst in 1u32..50, at in 0u64..10 * SECOND) {
            let (gcra, rate) = (Gcra::default(), Rate::new(per_second, burst));
            let wait = loop {
                if let Err(wait) = gcra.take(rate, Nanos(at)) {
                    break wait;
                }
            };
            prop_assert_eq!(gcra.take(rate, Nanos(at) + wait), Ok(()));
        }
    }
}
