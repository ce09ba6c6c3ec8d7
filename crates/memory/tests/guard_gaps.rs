//! A write outside what is open ends the process: each case runs in a process of its own, started from this test's own binary.
#![cfg(not(miri))]

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use insula_memory::{ARENA_BYTES, Domain, HostBudget, Reaper};

#[path = "support/real_domain.rs"]
mod real_domain;

const CHILD: &str = "INSULA_MEMORY_TEST_CHILD";

/// Runs the test called `name` again in a new process, where [`is_child`] is true, and says how it ended.
fn in_a_process_of_its_own(name: &str) -> ExitStatus {
    let mut command = Command::new(env::current_exe().expect("this test's binary"));
    command.args(["--exact", name, "--test-threads=1"]).env(CHILD, "1");
    // the address sanitizer would turn the signal into an exit of its own
    command.env("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0");
    command.output().expect("a child process").status
}

fn is_child() -> bool {
    let child = env::var_os(CHILD).is_some();
    if child {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure lives through the call; a process that is meant to crash leaves no core behind.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    }
    child
}

fn house() -> (Reaper, Arc<Domain>) {
    let reaper = Reaper::inline();
    let domain = real_domain::domain("acme-corp", 16 << 20, &HostBudget::new(u64::MAX), &reaper);
    (reaper, domain)
}

/// Writes one byte `distance` bytes from the beginning of a lease of `bytes` bytes.
fn write_at(bytes: usize, distance: isize) {
    let (_reaper, domain) = house();
    let mut lease = domain.lease(bytes).expect("a lease");
    let start = lease.as_mut_slice().as_mut_ptr();
    // SAFETY: within the lease this is a plain write; outside, the system ends this process, which is what is tested.
    unsafe { start.wrapping_offset(distance).write_volatile(1) };
}

#[test]
fn a_write_past_an_arena_dies() {
    if is_child() {
        return write_at(ARENA_BYTES, ARENA_BYTES as isize);
    }
    assert_eq!(in_a_process_of_its_own("a_write_past_an_arena_dies").signal(), Some(libc::SIGSEGV));
}

#[test]
fn a_write_before_the_first_arena_dies() {
    if is_child() {
        return write_at(ARENA_BYTES, -1);
    }
    assert_eq!(in_a_process_of_its_own("a_write_before_the_first_arena_dies").signal(), Some(libc::SIGSEGV));
}

#[test]
fn a_write_past_a_row_of_arenas_dies() {
    if is_child() {
        return write_at(3 * ARENA_BYTES, 3 * ARENA_BYTES as isize);
    }
    assert_eq!(in_a_process_of_its_own("a_write_past_a_row_of_arenas_dies").signal(), Some(libc::SIGSEGV));
}

#[test]
fn a_write_to_memory_that_was_given_back_to_the_system_dies() {
    if is_child() {
        let (_reaper, domain) = house();
        let mut lease = domain.lease(3 * ARENA_BYTES).unwrap();
        let start = lease.as_mut_slice().as_mut_ptr();
        drop(lease);
        domain.set_limit(1);
        // SAFETY: the addresses are closed, so the system ends this process, which is what is tested.
        return unsafe { start.write_volatile(1) };
    }
    let status = in_a_process_of_its_own("a_write_to_memory_that_was_given_back_to_the_system_dies");
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn writes_to_the_first_and_last_byte_of_a_lease_live() {
    if is_child() {
        for bytes in [ARENA_BYTES, 3 * ARENA_BYTES] {
            write_at(bytes, 0);
            write_at(bytes, bytes as isize - 1);
        }
        return;
    }
    assert!(in_a_process_of_its_own("writes_to_the_first_and_last_byte_of_a_lease_live").success());
}
