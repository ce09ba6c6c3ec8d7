//! Lets one warning through a minute, and counts what it held back. Used where a fault outside (no collector, a full disk)
//! would otherwise fill the log.

use std::time::Duration;

use insula_core::Nanos;

const INTERVAL: Duration = Duration::from_secs(60);

/// Decides which warnings are written.
#[derive(Debug, Default)]
pub(crate) struct WarningGate {
    last: Option<Nanos>,
    held_back: u64,
}

impl WarningGate {
    /// Whether a warning may be written at `now`: then how many were held back since the last one.
    pub(crate) fn pass(&mut self, now: Nanos) -> Option<u64> {
        if self.last.is_some_and(|last| now.since(last) < INTERVAL) {
            self.held_back += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_a_minute_passes_and_says_how_many_did_not() {
        let mut gate = WarningGate::default();
        let at = |seconds: u64| Nanos(seconds * 1_000_000_000);
        assert_eq!(gate.pass(at(5)), Some(0));
        assert_eq!(gate.pass(at(6)), None);
        assert_eq!(gate.pass(at(64)), None);
        assert_eq!(gate.pass(at(65)), Some(2));
        assert_eq!(gate.pass(at(66)), None);
        assert_eq!(gate.pass(at(500)), Some(1));
        assert_eq!(gate.pass(at(560)), Some(0));
    }
}
