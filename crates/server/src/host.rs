//! What this machine and its control group let the process use: processors and memory. It only reads files of the kernel,
//! below a root that tests replace, and gives no error: what cannot be read does not limit.

use std::fs;
use std::path::{Path, PathBuf};

/// What the process may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Host {
    /// Processors in the process's affinity mask, at least 1.
    pub(crate) allowed: usize,
    /// Processors' worth of time that the control group grants, if it limits that.
    pub(crate) quota: Option<f64>,
    /// Bytes of memory: the machine's or the control group's, whichever is less.
    pub(crate) memory: u64,
}

impl Host {
    /// Reads this machine.
    pub(crate) fn read() -> Host {
        Host::below(Path::new("/"))
    }

    fn below(root: &Path) -> Host {
        let groups = ControlGroups::read(root);
        let machine = machine_memory(root).unwrap_or(u64::MAX);
        Host {
            allowed: allowed_processors(root).unwrap_or(1).max(1),
            quota: groups.cpu_quota(),
            memory: groups.memory().map_or(machine, |limit| limit.min(machine)),
        }
    }

    /// Processors to make threads for: the mask, or the quota rounded up where that is less; at least 1.
    pub(crate) fn processors(&self) -> usize {
        let granted = self.quota.map_or(usize::MAX, |quota| quota.ceil().max(1.0) as usize);
        self.allowed.min(granted)
    }
}

fn read(path: PathBuf) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn allowed_processors(root: &Path) -> Option<usize> {
    let status = read(root.join("proc/self/status"))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    count_listed(list)
}

/// How many numbers a list such as `0-3,8` has.
fn count_listed(list: &str) -> Option<usize> {
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.sum()
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = read(root.join("proc/meminfo"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The folders of the control groups the process is in, from its own up to the root.
#[derive(Debug, Default)]
struct ControlGroups {
    /// Version 2, with every controller.
    unified: Vec<PathBuf>,
    /// Version 1's processor time.
    cpu: Vec<PathBuf>,
    /// Version 1's memory.
    memory: Vec<PathBuf>,
}

impl ControlGroups {
    fn read(root: &Path) -> ControlGroups {
        let mount = root.join("sys/fs/cgroup");
        let mut groups = ControlGroups::default();
        for line in read(root.join("proc/self/cgroup")).unwrap_or_default().lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            match controllers {
                "" => groups.unified = chain(&mount, path),
                list if list.split(',').any(|controller| controller == "cpu") => {
                    groups.cpu = chain(&mount.join("cpu"), path)
                }
                list if list.split(',').any(|controller| controller == "memory") => {
                    groups.memory = chain(&mount.join("memory"), path);
                }
                _ => {}
            }
        }
        groups
    }

    /// The tightest quota of all groups around the process.
    fn cpu_quota(&self) -> Option<f64> {
        let unified = self.unified.iter().filter_map(|group| {
            let text = read(group.join("cpu.max"))?;
            let (quota, period) = text.trim().split_once(' ')?;
            share(quota, period)
        });
        let first = self
            .cpu
            .iter()
            .filter_map(|group| share(&read(group.join("cpu.cfs_quota_us"))?, &read(group.join("cpu.cfs_period_us"))?));
        unified.chain(first).min_by(f64::total_cmp)
    }

    /// The tightest memory limit of all groups around the process.
    fn memory(&self) -> Option<u64> {
        let number = |path: PathBuf| read(path)?.trim().parse::<u64>().ok();
        let unified = self.unified.iter().filter_map(|group| number(group.join("memory.max")));
        let first = self.memory.iter().filter_map(|group| number(group.join("memory.limit_in_bytes")));
        unified.chain(first).min()
    }
}

/// The group at `path` and those around it. Inside a container the path may be one of the outside: then only the root is
/// there, and its files are the container's.
fn chain(mount: &Path, path: &str) -> Vec<PathBuf> {
    let own = mount.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|group| group.starts_with(mount)).map(Path::to_owned).collect()
}

/// `quota` of `period` microseconds, as processors; `None` where there is no limit.
fn share(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (quota.trim().parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of 64 processors and 1 GiB with the given control group files.
    fn host(cgroup: &str, files: &[(&str, &str)]) -> Host {
        let root = tempfile::tempdir().unwrap();
        let fixed = [
            ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,8,60-62\n"),
            ("proc/meminfo", "MemTotal:        1048576 kB\nMemFree: 1 kB\n"),
            ("proc/self/cgroup", cgroup),
        ];
        for (path, text) in fixed.iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Host::below(root.path())
    }

    #[test]
    fn without_limits_the_mask_and_the_machine_count() {
        let host = host("0::/\n", &[("sys/fs/cgroup/cpu.max", "max 100000\n"), ("sys/fs/cgroup/memory.max", "max\n")]);
        assert_eq!(host, Host { allowed: 8, quota: None, memory: 1 << 30 });
        assert_eq!(host.processors(), 8);
    }

    #[test]
    fn a_quota_is_rounded_up_to_whole_processors() {
        for (quota, processors) in [("50000", 1), ("100000", 1), ("150000", 2), ("6400000", 8)] {
            let host = host("0::/a/b\n", &[("sys/fs/cgroup/a/b/cpu.max", &format!("{quota} 100000\n"))]);
            assert_eq!(host.processors(), processors, "{quota}");
        }
    }

    #[test]
    fn the_tightest_of_the_groups_around_counts() {
        let files = [
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "2000\n"),
            ("sys/fs/cgroup/a/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ];
        let host = host("0::/a/b\n", &files);
        assert_eq!((host.memory, host.quota), (1000, Some(2.0)));
    }

    #[test]
    fn the_first_version_of_control_groups_counts_too() {
        let files = [
            ("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "300000\n"),
            ("sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "4096\n"),
        ];
        let host = host("5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n", &files);
        assert_eq!((host.quota, host.memory), (Some(3.0), 4096));
    }

    #[test]
    fn a_container_that_sees_an_outer_path_finds_its_limits_at_the_root() {
        let host = host("0::/../../docker/x\n", &[("sys/fs/cgroup/cpu.max", "100000 100000\n")]);
        assert_eq!(host.processors(), 1);
    }

    #[test]
    fn a_machine_that_tells_nothing_gets_one_processor() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Host::below(root.path()).processors(), 1);
    }
}
