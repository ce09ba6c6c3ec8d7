//! Reads nodes and processors from the system's files. What is missing or malformed counts as not said: a server must start
//! on any machine. The folders are values, so that tests bring their own.

use std::path::{Path, PathBuf};

use super::{Node, Topology, cgroup, cpu_list};

/// Where the system describes itself, and which processors this process may run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineView {
    /// `/sys`, or a folder like it.
    pub sys: PathBuf,
    /// `/proc`, or a folder like it.
    pub proc: PathBuf,
    /// The affinity mask, ascending; empty when it is not known.
    pub allowed: Vec<usize>,
}

/// The most processors that an affinity mask is asked for.
const MOST_CPUS: usize = rustix::thread::CpuSet::MAX_CPU;

impl MachineView {
    /// The real thing.
    pub fn of_this_process() -> MachineView {
        let mask = rustix::thread::sched_getaffinity(None);
        let allowed = mask.map(|mask| (0..MOST_CPUS).filter(|cpu| mask.is_set(*cpu)).collect());
        MachineView { sys: "/sys".into(), proc: "/proc".into(), allowed: allowed.unwrap_or_default() }
    }
}

pub(super) fn read(view: &MachineView) -> Topology {
    let allowed = allowed(view);
    let nodes = nodes(&view.sys, &allowed);
    let limit = cgroup::processors(view).unwrap_or(usize::MAX);
    Topology { nodes, processors: allowed.len().min(limit).max(1) }
}

/// The affinity mask, or what is online, or the first processor.
fn allowed(view: &MachineView) -> Vec<usize> {
    if !view.allowed.is_empty() {
        return view.allowed.clone();
    }
    let online = list(&view.sys.join("devices/system/cpu/online")).unwrap_or_default();
    if online.is_empty() { vec![0] } else { online }
}

fn nodes(sys: &Path, allowed: &[usize]) -> Vec<Node> {
    let folder = sys.join("devices/system/node");
    let mut nodes = Vec::new();
    let mut placed = Vec::new();
    for number in list(&folder.join("online")).unwrap_or_default() {
        let Ok(id) = u32::try_from(number) else { continue };
        let listed = list(&folder.join(format!("node{number}/cpulist"))).unwrap_or_default();
        let cpus: Vec<usize> =
            listed.into_iter().filter(|cpu| allowed.contains(cpu) && !placed.contains(cpu)).collect();
        placed.extend_from_slice(&cpus);
        nodes.push(Node { id, cpus, devices: Vec::new() });
    }
    // Processors that no node lists: all of them where the system says nothing of nodes.
    let homeless: Vec<usize> = allowed.iter().copied().filter(|cpu| !placed.contains(cpu)).collect();
    match nodes.first_mut() {
        None => nodes.push(Node { id: 0, cpus: homeless, devices: Vec::new() }),
        Some(first) => {
            first.cpus.extend(homeless);
            first.cpus.sort_unstable();
        }
    }
    nodes
}

fn list(path: &Path) -> Option<Vec<usize>> {
    cpu_list::parse(&std::fs::read_to_string(path).ok()?)
}
