//! The cores that a server would have: those its threads may run on, the time it may use of them, and the NUMA nodes they
//! belong to.

use super::control_groups::ControlGroups;
use super::finding::Finding;
use super::machine_files::MachineFiles;

/// The findings about cores and nodes.
pub fn check(machine: &MachineFiles) -> Vec<Finding> {
    let allowed = machine.field("proc/self/status", "Cpus_allowed_list").and_then(|list| cpu_list(&list));
    let mut findings = vec![cores(allowed.as_deref(), machine)];
    findings.extend(quota(allowed.as_deref(), machine));
    findings.push(nodes(machine));
    findings
}

fn cores(allowed: Option<&[u32]>, machine: &MachineFiles) -> Finding {
    let Some(allowed) = allowed else {
        return Finding::warn("cores", "not reported", "make /proc readable, so that threads can be placed");
    };
    let online = machine.text("sys/devices/system/cpu/online").and_then(|list| cpu_list(&list));
    let value = match online {
        Some(online) => format!("{} allowed, {} online", allowed.len(), online.len()),
        None => format!("{} allowed", allowed.len()),
    };
    if allowed.len() == 1 {
        return Finding::warn(
            "cores",
            value,
            "give it two or more: connections, tenants' loops and kernels share this one",
        );
    }
    Finding::ok("cores", value)
}

fn quota(allowed: Option<&[u32]>, machine: &MachineFiles) -> Option<Finding> {
    let cores = ControlGroups::new(machine).cores()?;
    let allowed = allowed.map_or(0, <[u32]>::len);
    let value = format!("{cores:.2} cores' worth of time");
    Some(if cores < allowed as f64 {
        let advice = format!(
            "threads are made for {allowed} cores and will be stopped when the time is used up: allow whole cores instead (a cpuset)"
        );
        Finding::warn("cpu quota", value, advice)
    } else {
        Finding::ok("cpu quota", value)
    })
}

fn nodes(machine: &MachineFiles) -> Finding {
    let folder = "sys/devices/system/node";
    let with_cores = |name: &String| {
        let number = name
            .strip_prefix("node")
            .filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))?;
        let list = machine.text(format!("{folder}/{name}/cpulist")).filter(|list| !list.is_empty())?;
        Some(format!("{number} (cores {list})"))
    };
    let nodes: Vec<String> = machine.names(folder).iter().filter_map(with_cores).collect();
    match nodes.len() {
        0 => Finding::ok("numa nodes", "not reported: taken as one"),
        count => Finding::ok("numa nodes", format_args!("{count}: {}", nodes.join(", "))),
    }
}

/// The cores of a list as the kernel writes it, such as `0-3,8`; `None` if it is none.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last > 1 << 16 {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine_files::folder_with;
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(cpu_list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(cpu_list(""), Some(vec![]));
        for wrong in ["a", "1-", "1-x", "0-4294967295"] {
            assert_eq!(cpu_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_large_machine_is_described() {
        let (_folder, machine) = folder_with(&[
            ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\n"),
            ("sys/devices/system/cpu/online", "0-31\n"),
            ("sys/devices/system/node/node0/cpulist", "0-15\n"),
            ("sys/devices/system/node/node1/cpulist", "16-31\n"),
            ("sys/devices/system/node/node2/cpulist", "\n"),
            ("sys/devices/system/node/online", "0-2\n"),
        ]);
        let expected = [
            Finding::ok("cores", "8 allowed, 32 online"),
            Finding::ok("numa nodes", "2: 0 (cores 0-15), 1 (cores 16-31)"),
        ];
        assert_eq!(check(&machine), expected);
    }

    #[test]
    fn one_core_and_a_quota_below_the_cores_deserve_a_look() {
        let (_folder, machine) = folder_with(&[("proc/self/status", "Cpus_allowed_list:\t3\n")]);
        assert_eq!(check(&machine)[0].level, Level::Warn);
        let (_folder, machine) = folder_with(&[
            ("proc/self/status", "Cpus_allowed_list:\t0-3\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ]);
        let quota = &check(&machine)[1];
        assert_eq!((quota.level, quota.value.as_str()), (Level::Warn, "1.50 cores' worth of time"));
    }
}
