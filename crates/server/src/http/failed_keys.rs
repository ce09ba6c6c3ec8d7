//! Who has been trying wrong keys: counts failures per address over a short window and says how long the next answer
//! should wait. Pure: it takes the time, waits for nothing and holds a bounded table. Authentication asks it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use insula_core::Nanos;

/// The time over which failures count.
const WINDOW: Duration = Duration::from_secs(10);

/// Failures within the window that are answered at once.
const FREE: u32 = 20;

/// What the first slowed answer waits; each further one waits as much more.
const STEP: Duration = Duration::from_millis(100);

/// The longest an answer waits.
const LONGEST: Duration = Duration::from_secs(1);

/// The most addresses remembered. What comes on top shares one count, which can only slow strangers down.
const ADDRESSES: usize = 4096;

/// Failures of one address in the current window.
#[derive(Debug, Clone, Copy)]
struct Failures {
    since: Nanos,
    count: u32,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct FailedKeys {
    table: Mutex<HashMap<IpAddr, Failures>>,
}

impl FailedKeys {
    /// Notes a failure from `address` at `now` and says how long its answer should wait, if at all.
    pub(crate) fn note(&self, address: IpAddr, now: Nanos) -> Option<Duration> {
        let mut table = self.lock();
        let group = group(address);
        if table.len() >= ADDRESSES && !table.contains_key(&group) {
            table.retain(|_, failures| now.since(failures.since) < WINDOW);
        }
        let group = if table.len() >= ADDRESSES && !table.contains_key(&group) { OTHERS } else { group };
        let failures = table.entry(group).or_insert(Failures { since: now, count: 0 });
        if now.since(failures.since) >= WINDOW {
            *failures = Failures { since: now, count: 0 };
        }
        failures.count = failures.count.saturating_add(1);
        let slowed = failures.count.checked_sub(FREE).filter(|slowed| *slowed > 0)?;
        Some(STEP.saturating_mul(slowed).min(LONGEST))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Failures>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address under which all count that the table has no room for.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// One count for a whole IPv6 network of 64 bits, which a single caller usually has to itself.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos(1_000_000_000);

    fn address(last: u16) -> IpAddr {
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, last, 0, 0, 0, 7))
    }

    #[test]
    fn the_first_failures_are_answered_at_once_and_later_ones_ever_later() {
        let table = FailedKeys::default();
        for _ in 0..FREE {
            assert_eq!(table.note(address(1), START), None);
        }
        assert_eq!(table.note(address(1), START), Some(STEP));
        assert_eq!(table.note(address(1), START), Some(STEP * 2));
        let last = (0..100).filter_map(|_| table.note(address(1), START)).last();
        assert_eq!(last, Some(LONGEST));
        assert_eq!(table.note(address(2), START), None);
    }

    #[test]
    fn a_quiet_time_forgives() {
        let table = FailedKeys::default();
        for _ in 0..50 {
            table.note(address(1), START);
        }
        assert_eq!(table.note(address(1), START + WINDOW), None);
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let table = FailedKeys::default();
        let slowed = (0..FREE + 1).filter_map(|host| {
            let host = u16::try_from(host).unwrap();
            table.note(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, host)), START)
        });
        assert_eq!(slowed.count(), 1);
    }

    #[test]
    fn the_table_stays_bounded_whatever_comes() {
        let table = FailedKeys::default();
        for last in 0..=u16::MAX {
            table.note(address(last), START);
        }
        assert!(table.lock().len() <= ADDRESSES + 1);
    }
}
