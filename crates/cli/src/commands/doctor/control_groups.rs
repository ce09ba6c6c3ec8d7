//! The limits of the control groups that this process is in, for both versions of the interface. Of nested groups the
//! tightest counts. It reads only.

use std::path::{Component, Path, PathBuf};

use super::machine_files::MachineFiles;

/// Limits at and above this are how version 1 says that there is none.
const NO_LIMIT: u64 = 1 << 60;

/// The control groups of this process.
#[derive(Debug)]
pub struct ControlGroups<'a> {
    machine: &'a MachineFiles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    V1,
    V2,
}

impl<'a> ControlGroups<'a> {
    /// Those that `machine` tells of.
    pub fn new(machine: &'a MachineFiles) -> ControlGroups<'a> {
        ControlGroups { machine }
    }

    /// How many cores' worth of time may be used.
    pub fn cores(&self) -> Option<f64> {
        let quota = |(interface, group): (Interface, PathBuf)| {
            let (quota, period) = match interface {
                Interface::V1 => (
                    self.machine.number(group.join("cpu.cfs_quota_us"))?,
                    self.machine.number(group.join("cpu.cfs_period_us"))?,
                ),
                Interface::V2 => {
                    let text = self.machine.text(group.join("cpu.max"))?;
                    let (quota, period) = text.split_once(' ')?;
                    (quota.parse().ok()?, period.parse().ok()?)
                }
            };
            (period > 0).then_some(quota as f64 / period as f64)
        };
        self.groups("cpu").into_iter().filter_map(quota).min_by(f64::total_cmp)
    }

    /// How many bytes of memory may be used.
    pub fn memory(&self) -> Option<u64> {
        let limit = |(interface, group): (Interface, PathBuf)| {
            let file = if interface == Interface::V1 { "memory.limit_in_bytes" } else { "memory.max" };
            self.machine.number(group.join(file)).filter(|bytes| *bytes < NO_LIMIT)
        };
        self.groups("memory").into_iter().filter_map(limit).min()
    }

    /// How many more threads and processes may be made.
    pub fn free_tasks(&self) -> Option<u64> {
        let free = |(_, group): (Interface, PathBuf)| {
            let limit = self.machine.number(group.join("pids.max"))?;
            Some(limit.saturating_sub(self.machine.number(group.join("pids.current")).unwrap_or(0)))
        };
        self.groups("pids").into_iter().filter_map(free).min()
    }

    /// The folders of the groups that have a say on `controller`, inner ones first.
    fn groups(&self, controller: &str) -> Vec<(Interface, PathBuf)> {
        let memberships = self.machine.text("proc/self/cgroup").unwrap_or_default();
        let mut groups = Vec::new();
        for line in memberships.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            if controllers.is_empty() {
                for mount in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] {
                    groups.extend(self.below(mount, path).into_iter().map(|group| (Interface::V2, group)));
                }
            } else if controllers.split(',').any(|name| name == controller) {
                let together = format!("sys/fs/cgroup/{controllers}");
                let mount =
                    if self.machine.has_folder(&together) { together } else { format!("sys/fs/cgroup/{controller}") };
                groups.extend(self.below(&mount, path).into_iter().map(|group| (Interface::V1, group)));
            }
        }
        groups
    }

    /// The group at `path` below `mount` and all that it lies in. A container may see its own group as the root while the
    /// path still names it from outside; then only the root is there.
    fn below(&self, mount: &str, path: &str) -> Vec<PathBuf> {
        let inner: PathBuf = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let folders = inner.ancestors().map(|inner| Path::new(mount).join(inner));
        folders.filter(|folder| self.machine.has_folder(folder)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::machine_files::folder_with;
    use super::*;

    #[test]
    fn version_two_is_read_with_the_tightest_of_nested_groups() {
        let (_folder, machine) = folder_with(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/memory.max", "1048576\n"),
            ("sys/fs/cgroup/a/b/memory.max", "2097152\n"),
            ("sys/fs/cgroup/a/b/pids.max", "100\n"),
            ("sys/fs/cgroup/a/b/pids.current", "30\n"),
        ]);
        let groups = ControlGroups::new(&machine);
        assert_eq!((groups.cores(), groups.memory(), groups.free_tasks()), (Some(1.5), Some(1 << 20), Some(70)));
    }

    #[test]
    fn version_one_is_read_beside_an_empty_version_two() {
        let (_folder, machine) = folder_with(&[
            ("proc/self/cgroup", "4:memory:/x\n2:cpu,cpuacct:/x\n0::/\n"),
            ("sys/fs/cgroup/unified/cgroup.procs", ""),
            ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000"),
            ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4194304"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
        ]);
        let groups = ControlGroups::new(&machine);
        assert_eq!((groups.cores(), groups.memory(), groups.free_tasks()), (Some(0.5), Some(4 << 20), None));
    }

    #[test]
    fn a_container_that_sees_only_its_own_group_is_understood() {
        let files = [("proc/self/cgroup", "0::/../../docker/1\n"), ("sys/fs/cgroup/memory.max", "4096\n")];
        let (_folder, machine) = folder_with(&files);
        assert_eq!(ControlGroups::new(&machine).memory(), Some(4096));
    }

    #[test]
    fn without_control_groups_there_is_no_limit() {
        let (_folder, machine) = folder_with(&[]);
        let groups = ControlGroups::new(&machine);
        assert_eq!((groups.cores(), groups.memory(), groups.free_tasks()), (None, None, None));
    }

    proptest! {
        // Each case writes files.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_text_in_these_files_makes_the_reader_panic(cgroup in "[0-9:a-z,/.\n]{0,60}", max in "[0-9a-z .-]{0,30}") {
            let (_folder, machine) = folder_with(&[
                ("proc/self/cgroup", &cgroup),
                ("sys/fs/cgroup/cpu.max", &max),
                ("sys/fs/cgroup/memory.max", &max),
            ]);
            let groups = ControlGroups::new(&machine);
            prop_assert!(groups.cores().is_none_or(|cores| cores >= 0.0));
            let _ = (groups.memory(), groups.free_tasks());
        }
    }
}
