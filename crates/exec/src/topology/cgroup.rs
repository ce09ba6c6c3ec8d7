//! How much processor time the control groups of this process allow: version 2's `cpu.max`, version 1's quota and period.
//! A group's limit holds for all groups inside it, so the smallest on the way to the root counts.

use std::path::{Component, Path, PathBuf};

use super::MachineView;

/// Processors' worth of time, rounded up; `None` without a limit.
pub(super) fn processors(view: &MachineView) -> Option<usize> {
    let groups = std::fs::read_to_string(view.proc.join("self/cgroup")).ok()?;
    let mount = view.sys.join("fs/cgroup");
    groups.lines().filter_map(|line| limit_of_line(&mount, line)).min()
}

/// A line is `hierarchy:controllers:path`; version 2's has the number 0 and no controllers.
fn limit_of_line(mount: &Path, line: &str) -> Option<usize> {
    let mut parts = line.splitn(3, ':');
    let (hierarchy, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    if hierarchy == "0" && controllers.is_empty() {
        let roots = [mount.to_path_buf(), mount.join("unified")];
        return roots.iter().filter_map(|root| smallest(root, path, version_2)).min();
    }
    if !controllers.split(',').any(|controller| controller == "cpu") {
        return None;
    }
    let roots = [mount.join(controllers), mount.join("cpu")];
    roots.iter().filter_map(|root| smallest(root, path, version_1)).min()
}

/// The smallest limit of the group at `path` and the groups around it. Inside a container `path` may be the host's and not
/// exist; the root of the mount is then the container's own group.
fn smallest(root: &Path, path: &str, read: fn(&Path) -> Option<usize>) -> Option<usize> {
    let names = Path::new(path).components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut folder: PathBuf = root.to_path_buf();
    let mut limit = read(&folder);
    for name in names {
        folder.push(name);
        limit = [limit, read(&folder)].into_iter().flatten().min();
    }
    limit
}

fn version_2(group: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    rounded_up(quota, period)
}

fn version_1(group: &Path) -> Option<usize> {
    let quota = std::fs::read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
    let period = std::fs::read_to_string(group.join("cpu.cfs_period_us")).ok()?;
    rounded_up(&quota, &period)
}

/// `max` and -1, no numbers above zero, mean no limit.
fn rounded_up(quota: &str, period: &str) -> Option<usize> {
    let quota: usize = quota.trim().parse().ok()?;
    let period: usize = period.trim().parse().ok().filter(|period| *period > 0)?;
    Some(quota.div_ceil(period).max(1))
}
