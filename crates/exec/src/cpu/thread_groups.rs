//! Compute threads by place: a group for each NUMA node, used by the runs that are called from its processors. It picks groups
//! and never runs anything itself.

use insula_core::Result;

use super::compute_threads::ComputeThreads;
use crate::topology::Topology;

/// With this many processors or more, one in four is kept from computing: for HTTP and the tenants' loops.
const MANY_PROCESSORS: usize = 8;

/// All groups; at least one.
#[derive(Debug)]
pub(super) struct ThreadGroups {
    first: Group,
    others: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    cpus: Vec<usize>,
    threads: ComputeThreads,
}

impl ThreadGroups {
    /// One group of `threads`.
    pub(super) fn of(threads: ComputeThreads) -> ThreadGroups {
        ThreadGroups { first: Group { cpus: Vec::new(), threads }, others: Vec::new() }
    }

    /// A group for each node of `topology` that gets workers, `workers` in all or one a node. A node's workers and the other
    /// threads of its group are together as many as its share of the processors.
    pub(super) fn of_topology(topology: &Topology, workers: Option<usize>) -> Result<ThreadGroups> {
        let shares = shares(topology, workers);
        let mut groups = Vec::with_capacity(shares.len());
        for (node, count) in topology.compute_nodes().zip(shares) {
            groups.push(Group { cpus: node.cpus.clone(), threads: ComputeThreads::start(count, &node.cpus)? });
        }
        let mut groups = groups.into_iter();
        Ok(match groups.next() {
            Some(first) => ThreadGroups { first, others: groups.collect() },
            None => ThreadGroups::of(ComputeThreads::alone()),
        })
    }

    /// The most threads that a run can use.
    pub(super) fn most(&self) -> usize {
        self.groups().map(|group| group.threads.count()).max().unwrap_or(1)
    }

    /// The group of the processor that calls, else the first.
    pub(super) fn here(&self) -> &ComputeThreads {
        if self.others.is_empty() {
            return &self.first.threads;
        }
        let cpu = rustix::thread::sched_getcpu();
        let beside = self.groups().find(|group| group.cpus.contains(&cpu));
        &beside.unwrap_or(&self.first).threads
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

/// Threads of a run on each compute node, the calling worker among them.
fn shares(topology: &Topology, workers: Option<usize>) -> Vec<usize> {
    let nodes: Vec<usize> = topology.compute_nodes().map(|node| node.cpus.len()).collect();
    let processors = topology.processors();
    let spared = if processors < MANY_PROCESSORS { processors } else { processors - processors / 4 };
    let each = |index: usize, of: usize| of / nodes.len() + usize::from(index < of % nodes.len());
    let share = |(index, cpus): (usize, &usize)| {
        let workers = each(index, workers.unwrap_or(nodes.len()));
        each(index, spared).min(*cpus).saturating_sub(workers.saturating_sub(1)).max(1)
    };
    nodes.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(nodes: &[usize]) -> Topology {
        let mut cpu = 0;
        let node = |(id, count): (usize, &usize)| {
            let cpus: Vec<usize> = (cpu..cpu + count).collect();
            cpu += count;
            format!(r#"{{"id":{id},"cpus":{cpus:?}}}"#)
        };
        let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
        Topology::from_json(&format!(r#"{{"nodes":[{}]}}"#, nodes.join(","))).unwrap()
    }

    #[test]
    fn a_worker_has_its_node_s_share_of_the_processors() {
        assert_eq!(shares(&topology(&[2]), None), [2]);
        assert_eq!(shares(&topology(&[2]), Some(2)), [1]);
        assert_eq!(shares(&topology(&[4]), Some(2)), [3]);
        assert_eq!(shares(&topology(&[4]), Some(9)), [1]);
        assert_eq!(shares(&topology(&[8]), None), [6]);
        assert_eq!(shares(&topology(&[16, 16]), None), [12, 12]);
        assert_eq!(shares(&topology(&[3, 1]), None), [2, 1]);
    }

    #[test]
    fn every_node_has_a_group_and_every_caller_finds_one() {
        let groups = ThreadGroups::of_topology(&topology(&[2, 2, 1]), None).unwrap();
        assert_eq!((groups.others.len(), groups.most()), (2, 2));
        assert!(groups.here().count() <= 2);
        assert_eq!(ThreadGroups::of(ComputeThreads::alone()).here().count(), 1);
    }
}
