//! What the machine looks like: NUMA nodes with the processors this process may use, and how many of them it may keep busy.
//! Read from the system or injected as a value, so that any machine can be tried on any other. It starts no thread; the
//! runtime opens one worker for each node with processors, and threads pin themselves through here.

mod cgroup;
mod cpu_list;
mod injected;
mod machine;
mod thread;

use insula_core::{Error, Result};
pub use machine::MachineView;
pub use thread::{lower_current_thread_priority, pin_current_thread};

/// The environment variable that replaces the machine's own topology.
pub const TOPOLOGY_VARIABLE: &str = "INSULA_TOPOLOGY";

/// The machine as insula uses it. There is at least one node with processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Node>,
    processors: usize,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The system's number for it.
    pub id: u32,
    /// The processors that this process may use, ascending; none if the node is memory alone.
    pub cpus: Vec<usize>,
    /// Names of devices at this node, e.g. `cuda:0`.
    pub devices: Vec<String>,
}

impl Topology {
    /// What [`TOPOLOGY_VARIABLE`] says, or else the machine itself. Fails when the variable is wrong.
    pub fn detect() -> Result<Topology> {
        match std::env::var(TOPOLOGY_VARIABLE) {
            Ok(text) => Topology::from_json(&text).map_err(|error| error.context(TOPOLOGY_VARIABLE)),
            Err(std::env::VarError::NotPresent) => Ok(Topology::of_machine()),
            Err(std::env::VarError::NotUnicode(_)) => Err(Error::invalid(format!("{TOPOLOGY_VARIABLE} is not text"))),
        }
    }

    /// The machine that this process runs on.
    pub fn of_machine() -> Topology {
        Topology::read(&MachineView::of_this_process())
    }

    /// The topology that a JSON text describes: `{"nodes":[{"id":0,"cpus":[0,1],"devices":["cuda:0"]}]}`. The error names
    /// what is wrong with it.
    pub fn from_json(text: &str) -> Result<Topology> {
        injected::parse(text)
    }

    /// The topology of the machine in `view`. Where the system says nothing of nodes there is one, number 0.
    pub fn read(view: &MachineView) -> Topology {
        machine::read(view)
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many processors' worth of time this process may use: no more than it is allowed to run on, nor than its control
    /// groups let it have. At least 1.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The nodes that get workers: those with processors, no more than [`Topology::processors`].
    pub fn compute_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.cpus.is_empty()).take(self.processors)
    }

    /// One worker for each node that gets one.
    pub fn workers(&self) -> Vec<WorkerPlace> {
        self.compute_nodes().map(|node| WorkerPlace { node: node.id, cpus: node.cpus.clone() }).collect()
    }

    /// The node where the memory of tenant number `index` lies, in turns; `None` when there is no choice.
    pub fn home_node(&self, index: usize) -> Option<u32> {
        let nodes: Vec<u32> = self.compute_nodes().map(|node| node.id).collect();
        if nodes.len() < 2 { None } else { nodes.get(index % nodes.len()).copied() }
    }
}

/// Where a worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPlace {
    /// Its NUMA node.
    pub node: u32,
    /// The processors of that node.
    pub cpus: Vec<usize>,
}

#[cfg(test)]
mod tests;
