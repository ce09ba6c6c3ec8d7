//! How single settings are written: durations, sizes, shares, counts, addresses. Pure functions from text to value;
//! `None` is not of the form. The table of keys names the form to people.

use std::net::SocketAddr;
use std::time::Duration;

use insula_store::byte_size;

/// How much memory the server may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// So many hundredths of what this machine or its control group allows.
    Percent(u8),
    /// So many bytes.
    Bytes(u64),
}

impl MemoryLimit {
    /// The limit in bytes where `available` bytes could be had.
    pub fn of(self, available: u64) -> u64 {
        match self {
            MemoryLimit::Percent(percent) => available / 100 * u64::from(percent),
            MemoryLimit::Bytes(bytes) => bytes,
        }
    }
}

/// `"75%"` or a size.
pub(super) fn memory(text: &str) -> Option<MemoryLimit> {
    match text.strip_suffix('%') {
        Some(number) => {
            let percent = number.parse::<u8>().ok().filter(|percent| (1..=100).contains(percent))?;
            Some(MemoryLimit::Percent(percent))
        }
        None => byte_size::parse(text).filter(|bytes| *bytes > 0).map(MemoryLimit::Bytes),
    }
}

/// A whole number with `ms`, `s`, `m` or `h` behind it.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let total = number.parse::<u64>().ok()?.checked_mul(milliseconds)?;
    // A day is longer than anything here means and far from where clocks overflow.
    (total <= 86_400_000).then(|| Duration::from_millis(total))
}

/// A duration longer than zero.
pub(super) fn positive_duration(text: &str) -> Option<Duration> {
    duration(text).filter(|duration| !duration.is_zero())
}

/// A whole number from 1 to `most`.
pub(super) fn count(text: &str, most: usize) -> Option<usize> {
    text.parse().ok().filter(|count| (1..=most).contains(count))
}

/// `true` or `false`.
pub(super) fn flag(text: &str) -> Option<bool> {
    text.parse().ok()
}

/// A number from 0 to 1.
pub(super) fn ratio(text: &str) -> Option<f64> {
    text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio))
}

/// `ADDRESS:PORT`, `localhost:PORT` or `:PORT` for this machine alone. A leading `http://` is allowed, since the
/// command line's own variable for the admin address is an URL.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let plain = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let local = plain.strip_prefix("localhost:").or_else(|| plain.strip_prefix(':'));
    match local {
        Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))),
        None => plain.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1.5s", "1 s", "25h", "99999999999999999999s"] {
            assert_eq!(duration(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn memory_is_a_share_or_a_size() {
        assert_eq!(memory("75%").map(|limit| limit.of(1000)), Some(750));
        assert_eq!(memory("2GiB").map(|limit| limit.of(1000)), Some(2 << 30));
        for bad in ["0%", "101%", "%", "0", "half"] {
            assert_eq!(memory(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn addresses_may_name_this_machine_in_short() {
        let local = SocketAddr::from(([127, 0, 0, 1], 80));
        for text in ["127.0.0.1:80", "localhost:80", ":80", "http://127.0.0.1:80/"] {
            assert_eq!(address(text), Some(local), "{text}");
        }
        assert!(address("[::]:8000").is_some());
        for bad in ["", "8000", "127.0.0.1", "127.0.0.1:99999", "example.org:80"] {
            assert_eq!(address(bad), None, "{bad:?}");
        }
    }
}
