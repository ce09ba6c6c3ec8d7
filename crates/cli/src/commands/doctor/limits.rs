//! The limits on descriptors, threads, mappings and address space that a server would run under.

use super::control_groups::ControlGroups;
use super::finding::Finding;
use super::machine_files::MachineFiles;

/// Threads of a server beside the tenants' loops: HTTP, workers, the router, timers and spare ones.
const OWN_THREADS: u64 = 64;
/// Descriptors of a server beside its connections.
const OWN_FILES: u64 = 256;
/// The kernel's default for mappings, enough for thousands of tenants.
const MAPPINGS: u64 = 65_530;

/// What a server with the settings at hand would need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Connections at once.
    pub connections: u64,
    /// Tenants, each with a thread for its loop.
    pub tenants: u64,
}

/// The findings about limits.
pub fn check(machine: &MachineFiles, needs: Needs) -> Vec<Finding> {
    let mut findings = vec![open_files(machine, needs), threads(machine, needs)];
    findings.extend(mappings(machine));
    findings.push(address_space(machine));
    findings
}

fn open_files(machine: &MachineFiles, needs: Needs) -> Finding {
    let Some((soft, hard)) = process_limit(machine, "Max open files") else {
        return Finding::warn("open files", "not reported", "make /proc readable, or see `ulimit -n`");
    };
    let wanted = needs.connections.saturating_add(OWN_FILES);
    match soft {
        Some(soft) if soft <= OWN_FILES => Finding::bad(
            "open files",
            soft,
            format_args!("raise it (`ulimit -n {wanted}`, or LimitNOFILE= of the service)"),
        ),
        Some(soft) if soft < wanted => {
            let how = if hard.is_none_or(|hard| hard >= wanted) { "`ulimit -n`" } else { "`ulimit -n` as root" };
            let advice = format!(
                "server.max_connections is {}: raise this to {wanted} with {how} or LimitNOFILE= of the service, or lower that",
                needs.connections
            );
            Finding::warn("open files", soft, advice)
        }
        soft => Finding::ok("open files", shown(soft)),
    }
}

fn threads(machine: &MachineFiles, needs: Needs) -> Finding {
    let of_user = process_limit(machine, "Max processes").and_then(|(soft, _)| soft);
    let of_group = ControlGroups::new(machine).free_tasks();
    let of_machine = machine.number("proc/sys/kernel/threads-max");
    let least = [of_user, of_group, of_machine].into_iter().flatten().min();
    let wanted = needs.tenants.saturating_add(OWN_THREADS);
    match least {
        Some(least) if least < wanted => Finding::bad(
            "threads",
            least,
            format_args!(
                "{} tenants need about {wanted}: raise `ulimit -u`, TasksMax= of the service or pids.max",
                needs.tenants
            ),
        ),
        least => Finding::ok("threads", shown(least)),
    }
}

fn mappings(machine: &MachineFiles) -> Option<Finding> {
    let found = machine.number("proc/sys/vm/max_map_count")?;
    Some(if found < MAPPINGS {
        Finding::warn(
            "mappings",
            found,
            format_args!("fewer tenants fit: `sysctl vm.max_map_count={MAPPINGS}` or more"),
        )
    } else {
        Finding::ok("mappings", found)
    })
}

fn address_space(machine: &MachineFiles) -> Finding {
    match process_limit(machine, "Max address space") {
        Some((Some(soft), _)) => Finding::bad(
            "address space",
            format_args!("{} GiB", soft >> 30),
            "each tenant reserves a window of addresses: lift the limit with `ulimit -v unlimited` (RAM is bounded by server.memory)",
        ),
        Some((None, _)) => Finding::ok("address space", "unlimited"),
        None => Finding::ok("address space", "not reported"),
    }
}

/// The soft and the hard limit on the line that begins with `name`; an inner `None` is unlimited.
fn process_limit(machine: &MachineFiles, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let limits = machine.text("proc/self/limits")?;
    let mut values = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut next = || match values.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    Some((next()?, next()?))
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or("unlimited".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine_files::folder_with;
    use super::*;

    const NEEDS: Needs = Needs { connections: 10_000, tenants: 2 };

    fn limits(processes: &str, files: &str, address_space: &str) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max processes             {processes}                processes \n\
             Max open files            {files}                files     \n\
             Max address space         {address_space}            bytes     \n"
        )
    }

    fn levels(limits: &str, others: &[(&str, &str)]) -> Vec<(&'static str, Level)> {
        let (_folder, machine) = folder_with(&[&[("proc/self/limits", limits)], others].concat());
        check(&machine, NEEDS).into_iter().map(|finding| (finding.what, finding.level)).collect()
    }

    #[test]
    fn plenty_is_ok() {
        let limits = limits("96363  96363", "20000  20000", "unlimited  unlimited");
        let found = levels(&limits, &[("proc/sys/vm/max_map_count", "65530\n")]);
        let expected = ["open files", "threads", "mappings", "address space"].map(|what| (what, Level::Ok));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_shells_usual_limit_on_files_is_a_warning_that_says_what_to_type() {
        let (_folder, machine) =
            folder_with(&[("proc/self/limits", &limits("9999 9999", "1024 1048576", "unlimited unlimited"))]);
        let files = check(&machine, NEEDS).remove(0);
        assert_eq!((files.level, files.value.as_str()), (Level::Warn, "1024"));
        assert!(files.advice.unwrap().contains("raise this to 10256 with `ulimit -n` or"));
    }

    #[test]
    fn limits_under_which_nothing_works_are_bad() {
        let found =
            levels(&limits("40 40", "64 64", "1073741824 1073741824"), &[("proc/sys/vm/max_map_count", "1000\n")]);
        let expected = [
            ("open files", Level::Bad),
            ("threads", Level::Bad),
            ("mappings", Level::Warn),
            ("address space", Level::Bad),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_tightest_limit_on_threads_counts() {
        let limits = limits("unlimited unlimited", "20000 20000", "unlimited unlimited");
        let group = [
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/pids.max", "50\n"),
            ("proc/sys/kernel/threads-max", "9999\n"),
        ];
        assert_eq!(levels(&limits, &group)[1], ("threads", Level::Bad));
        assert_eq!(levels(&limits, &group[2..])[1], ("threads", Level::Ok));
    }
}
