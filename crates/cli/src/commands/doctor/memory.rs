//! The memory that a server would have: RAM, the control group's limit, huge pages, and how the kernel gives memory out;
//! and whether the server's own limit fits in it.

use insula_server::settings::MemoryLimit;

use super::control_groups::ControlGroups;
use super::finding::Finding;
use super::machine_files::MachineFiles;

/// Less than this is not enough to serve anything.
const LEAST: u64 = 256 << 20;

/// The findings about memory. `limit` is the server's own; `None` when the settings could not be read.
pub fn check(machine: &MachineFiles, limit: Option<MemoryLimit>) -> Vec<Finding> {
    let ram = kibibytes(machine, "MemTotal");
    let group = ControlGroups::new(machine).memory();
    let Some(available) = ram.into_iter().chain(group).min() else {
        return vec![Finding::bad("memory", "not reported", "make /proc readable: the server sizes itself by it")];
    };
    let mut findings = vec![amount(ram, group, available)];
    findings.extend(limit.map(|limit| budget(machine, limit.of(available), available)));
    findings.push(huge_pages(machine));
    findings.extend(overcommit(machine));
    findings
}

fn amount(ram: Option<u64>, group: Option<u64>, available: u64) -> Finding {
    let shown = |bytes: Option<u64>| bytes.map_or("not reported".to_owned(), gibibytes);
    let group =
        group.map_or("no control group limit".to_owned(), |bytes| format!("control group limit {}", gibibytes(bytes)));
    let value = format!("RAM {}, {group}", shown(ram));
    if available < LEAST {
        return Finding::bad("memory", value, format_args!("give it {} or more", gibibytes(LEAST)));
    }
    Finding::ok("memory", value)
}

fn budget(machine: &MachineFiles, budget: u64, available: u64) -> Finding {
    let value = format!("the server may take {}", gibibytes(budget));
    if budget > available {
        let advice = format!("that is more than there is: set server.memory to {} or less", gibibytes(available));
        return Finding::bad("memory limit", value, advice);
    }
    match kibibytes(machine, "MemAvailable").filter(|free| *free < budget) {
        Some(free) => {
            let advice = "other processes hold memory now: stop them, or set server.memory lower";
            Finding::warn("memory limit", format_args!("{value}, {} is free now", gibibytes(free)), advice)
        }
        None => Finding::ok("memory limit", value),
    }
}

fn huge_pages(machine: &MachineFiles) -> Finding {
    let modes = machine.text("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = modes.split_whitespace().find_map(|mode| mode.strip_prefix('[')?.strip_suffix(']'));
    match chosen {
        Some(mode @ ("always" | "madvise")) => Finding::ok("huge pages", mode),
        found => Finding::warn(
            "huge pages",
            found.unwrap_or("not reported"),
            "tenants' memory is slower in small pages: write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}

/// Only strict accounting is worth a line.
fn overcommit(machine: &MachineFiles) -> Option<Finding> {
    (machine.number("proc/sys/vm/overcommit_memory")? == 2).then(|| {
        let advice = "memory may run out before the server's own limit: set vm.overcommit_memory to 0 or 1, or raise vm.overcommit_ratio";
        Finding::warn("overcommit", "strict (vm.overcommit_memory = 2)", advice)
    })
}

/// The bytes of a line of `/proc/meminfo`, which counts in kibibytes.
fn kibibytes(machine: &MachineFiles, name: &str) -> Option<u64> {
    machine.field("proc/meminfo", name)?.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn gibibytes(bytes: u64) -> String {
    if bytes < 1 << 30 {
        return format!("{} MiB", bytes >> 20);
    }
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine_files::folder_with;
    use super::*;

    const MEMINFO: &str = "MemTotal:       8388608 kB\nMemAvailable:   4194304 kB\n";

    #[test]
    fn the_tighter_of_machine_and_control_group_counts() {
        let (_folder, machine) = folder_with(&[
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "2147483648\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ]);
        let expected = [
            Finding::ok("memory", "RAM 8.0 GiB, control group limit 2.0 GiB"),
            Finding::ok("memory limit", "the server may take 1.5 GiB"),
            Finding::ok("huge pages", "madvise"),
        ];
        assert_eq!(check(&machine, Some(MemoryLimit::Percent(75))), expected);
    }

    #[test]
    fn a_limit_over_what_there_is_is_bad_and_one_over_what_is_free_a_warning() {
        let (_folder, machine) = folder_with(&[("proc/meminfo", MEMINFO)]);
        assert_eq!(check(&machine, Some(MemoryLimit::Bytes(9 << 30)))[1].level, Level::Bad);
        let taken = &check(&machine, Some(MemoryLimit::Percent(75)))[1];
        assert_eq!(
            (taken.level, taken.value.as_str()),
            (Level::Warn, "the server may take 6.0 GiB, 4.0 GiB is free now")
        );
    }

    #[test]
    fn small_pages_and_strict_accounting_deserve_a_look() {
        let (_folder, machine) = folder_with(&[
            ("proc/meminfo", MEMINFO),
            ("proc/sys/vm/overcommit_memory", "2\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
        ]);
        let levels: Vec<_> = check(&machine, None).into_iter().map(|finding| (finding.what, finding.level)).collect();
        assert_eq!(levels, [("memory", Level::Ok), ("huge pages", Level::Warn), ("overcommit", Level::Warn)]);
    }

    #[test]
    fn too_little_memory_is_bad() {
        let (_folder, machine) = folder_with(&[("proc/meminfo", "MemTotal: 131072 kB\n")]);
        assert_eq!(check(&machine, None)[0].level, Level::Bad);
        let (_folder, nothing) = folder_with(&[]);
        assert_eq!(check(&nothing, None)[0].level, Level::Bad);
    }
}
