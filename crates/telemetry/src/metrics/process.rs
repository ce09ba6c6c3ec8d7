//! Figures of the process as Linux tells them: memory, threads, descriptors. Where there is no `/proc` they are left out.
//! Their names are those that Prometheus' own clients use.

use std::fs;

/// What the system says of this process at one moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessFigures {
    /// Bytes of memory that are resident.
    pub(super) resident_bytes: Option<u64>,
    pub(super) threads: Option<u64>,
    /// Open descriptors, without the one that counting them takes.
    pub(super) open_descriptors: Option<u64>,
}

impl ProcessFigures {
    pub(super) fn read() -> ProcessFigures {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let descriptors = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64);
        ProcessFigures {
            resident_bytes: field(&status, "VmRSS").and_then(|kibibytes| kibibytes.checked_mul(1024)),
            threads: field(&status, "Threads"),
            open_descriptors: descriptors.map(|count| count.saturating_sub(1)),
        }
    }
}

/// The number behind `name:` in the text of `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tinsula\nVmRSSx:\t 7 kB\nVmRSS:\t   2048 kB\nThreads:\t12\n";
        assert_eq!(field(status, "VmRSS"), Some(2048));
        assert_eq!(field(status, "Threads"), Some(12));
        assert_eq!(field(status, "Name"), None);
        assert_eq!(field("", "VmRSS"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_and_descriptors_are_those_of_this_process() {
        let before = ProcessFigures::read();
        let file = fs::File::open("/proc/self/status").unwrap();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stopped.recv().is_err());
        let after = ProcessFigures::read();
        // Other tests of this binary come and go, so only what this test holds is certain.
        assert!(after.threads >= Some(2), "{before:?} {after:?}");
        assert!(after.open_descriptors >= Some(4), "{before:?} {after:?}");
        assert!(after.resident_bytes > Some(100_000));
        drop((file, stop));
        assert!(thread.join().unwrap());
    }
}
