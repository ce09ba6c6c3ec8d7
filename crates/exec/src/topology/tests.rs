//! Topologies read from folders that look like a system's, and from JSON.

use std::path::Path;

use super::*;

/// A folder with files at the given paths.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

fn view(root: &Path, allowed: std::ops::Range<usize>) -> MachineView {
    MachineView { sys: root.join("sys"), proc: root.join("proc"), allowed: allowed.collect() }
}

fn read(files: &[(&str, &str)], allowed: std::ops::Range<usize>) -> Topology {
    let root = folder(files);
    Topology::read(&view(root.path(), allowed))
}

const TWO_NODES: [(&str, &str); 3] = [
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/node/node0/cpulist", "0-3\n"),
    ("sys/devices/system/node/node1/cpulist", "4-7\n"),
];

#[test]
fn every_node_with_processors_gets_a_worker() {
    let topology = read(&TWO_NODES, 0..8);
    assert_eq!(topology.processors(), 8);
    assert_eq!(
        topology.workers(),
        [WorkerPlace { node: 0, cpus: vec![0, 1, 2, 3] }, WorkerPlace { node: 1, cpus: vec![4, 5, 6, 7] }]
    );
}

#[test]
fn a_node_outside_the_affinity_mask_gets_none() {
    let topology = read(&TWO_NODES, 2..4);
    assert_eq!(topology.workers(), [WorkerPlace { node: 0, cpus: vec![2, 3] }]);
    assert_eq!((topology.nodes().len(), topology.processors()), (2, 2));
}

#[test]
fn a_node_that_is_memory_alone_gets_none() {
    let mut files = TWO_NODES.to_vec();
    files[2] = ("sys/devices/system/node/node1/cpulist", "\n");
    let topology = read(&files, 0..4);
    assert_eq!(topology.workers().len(), 1);
    assert!(topology.nodes()[1].cpus.is_empty());
}

#[test]
fn without_files_of_nodes_there_is_one() {
    let topology = read(&[("sys/devices/system/cpu/online", "0-5\n")], 0..0);
    assert_eq!(topology.workers(), [WorkerPlace { node: 0, cpus: vec![0, 1, 2, 3, 4, 5] }]);
    assert_eq!(topology.home_node(3), None);
    assert_eq!(read(&[], 0..0).workers(), [WorkerPlace { node: 0, cpus: vec![0] }]);
}

#[test]
fn processors_that_no_node_lists_go_to_the_first() {
    assert_eq!(read(&TWO_NODES, 0..10).nodes()[0].cpus, [0, 1, 2, 3, 8, 9]);
}

#[test]
fn malformed_files_count_as_absent() {
    let files = [
        ("sys/devices/system/node/online", "zero"),
        ("proc/self/cgroup", "what\n0::/\n"),
        ("sys/fs/cgroup/cpu.max", "many"),
    ];
    let topology = read(&files, 0..2);
    assert_eq!((topology.workers().len(), topology.processors()), (1, 2));
}

#[test]
fn the_second_version_of_control_groups_limits_processors() {
    let limited = |text: &str| {
        let files = [
            ("proc/self/cgroup", "0::/pod/app\n"),
            ("sys/fs/cgroup/pod/cpu.max", text),
            ("sys/fs/cgroup/pod/app/cpu.max", "max 100000\n"),
        ];
        read(&files, 0..8).processors()
    };
    assert_eq!(limited("250000 100000\n"), 3);
    assert_eq!(limited("200000 100000\n"), 2);
    assert_eq!(limited("10000 100000\n"), 1);
    assert_eq!(limited("max 100000\n"), 8);
    assert_eq!(limited("6400000 100000\n"), 8);
    assert_eq!(limited("100000 0\n"), 8);
}

#[test]
fn the_first_version_of_control_groups_limits_processors() {
    let limited = |quota: &str| {
        let files = [
            ("proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/app\n0::/\n"),
            ("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", quota),
            ("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n"),
        ];
        read(&files, 0..8).processors()
    };
    assert_eq!((limited("150000\n"), limited("-1\n")), (2, 8));
}

#[test]
fn inside_a_container_the_mount_is_the_containers_own_group() {
    let files = [("proc/self/cgroup", "0::/../../host/path\n"), ("sys/fs/cgroup/cpu.max", "100000 100000\n")];
    assert_eq!(read(&files, 0..8).processors(), 1);
}

#[test]
fn no_more_nodes_compute_than_processors_may_be_busy() {
    let mut files = TWO_NODES.to_vec();
    files.extend([("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", "50000 100000\n")]);
    assert_eq!(read(&files, 0..8).workers().len(), 1);
}

#[test]
fn a_topology_can_be_injected() {
    let text = r#"{"nodes":[{"id":0,"cpus":[1,0],"devices":["cuda:0","cuda:1"]},{"id":4,"cpus":[2]},{"id":5}]}"#;
    let topology = Topology::from_json(text).unwrap();
    assert_eq!(topology.nodes()[0], Node { id: 0, cpus: vec![0, 1], devices: vec!["cuda:0".into(), "cuda:1".into()] });
    assert_eq!((topology.processors(), topology.workers().len()), (3, 2));
    assert_eq!([0, 1, 2].map(|index| topology.home_node(index)), [Some(0), Some(4), Some(0)]);
}

#[test]
fn what_is_wrong_with_an_injected_topology_is_named() {
    let cases = [
        ("", "not understood"),
        (r#"{"nodes":[{"cpus":[0]}]}"#, "id"),
        (r#"{"nodes":[{"id":0,"cpu":[0]}]}"#, "cpu"),
        (r#"{"nodes":[{"id":0,"cpus":[-1]}]}"#, "-1"),
        (r#"{"nodes":[]}"#, "no node has processors"),
        (r#"{"nodes":[{"id":0,"cpus":[]}]}"#, "no node has processors"),
        (r#"{"nodes":[{"id":3,"cpus":[0]},{"id":3,"cpus":[1]}]}"#, "node 3 is described twice"),
        (r#"{"nodes":[{"id":0,"cpus":[7]},{"id":1,"cpus":[7]}]}"#, "processor 7 of node 1"),
        (r#"{"nodes":[{"id":0,"cpus":[0],"devices":["a","a"]}]}"#, "device \"a\""),
    ];
    for (text, named) in cases {
        let error = Topology::from_json(text).unwrap_err();
        assert!(error.message().contains(named), "{text}: {error}");
    }
}

#[test]
fn this_machine_has_processors_and_a_thread_can_be_pinned_to_one() {
    let topology = Topology::of_machine();
    let cpu = topology.workers()[0].cpus[0];
    std::thread::spawn(move || {
        pin_current_thread(&[cpu]).unwrap();
        assert_eq!(MachineView::of_this_process().allowed, [cpu]);
        assert!(pin_current_thread(&[cpu + 1]).unwrap_err().detail().unwrap().contains("not among"));
        assert!(pin_current_thread(&[]).is_err());
        assert!(pin_current_thread(&[usize::MAX]).is_err());
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_lowers_its_own_priority_alone() {
    let niceness = || rustix::process::getpriority_process(None).unwrap();
    let before = niceness();
    std::thread::spawn(move || {
        let lower = (before + 3).min(19);
        assert!(lower_current_thread_priority(lower));
        assert_eq!(niceness(), lower);
    })
    .join()
    .unwrap();
    assert_eq!(niceness(), before);
}
