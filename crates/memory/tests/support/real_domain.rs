//! Domains over real mappings for the tests of this folder, and what the system says of an address.

use std::sync::Arc;

use insula_memory::{CpuBacking, Domain, DomainSettings, HostBudget, Reaper, Scrub};

/// A lazily scrubbed domain of `limit` bytes over the host's memory.
pub fn domain(label: &str, limit: u64, budget: &Arc<HostBudget>, reaper: &Reaper) -> Arc<Domain> {
    let settings = DomainSettings { label: label.into(), limit, numa_node: Some(0), scrub: Scrub::Lazy };
    Domain::new(settings, Arc::new(CpuBacking::new()), budget, reaper).expect("a window")
}

/// The entry of `/proc/self/smaps` for the mapping that holds `address`: its lines, the header first; `None` when unmapped.
#[allow(dead_code)]
pub fn mapping_of(address: usize) -> Option<Vec<String>> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("the mappings of this process");
    let mut lines = smaps.lines();
    loop {
        let header = lines.by_ref().find_map(|line| Some((line, span(line)?)));
        let (line, (start, end)) = header?;
        if (start..end).contains(&address) {
            let rest = lines.take_while(|line| span(line).is_none());
            return Some([line].into_iter().chain(rest).map(str::to_owned).collect());
        }
    }
}

/// The addresses in a header line of `smaps`.
fn span(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}
