//! What a thread can do about where and how urgently it runs. Failures are the caller's to report: a thread runs on, only
//! less well placed.

use insula_core::{Error, Result};
use rustix::thread::CpuSet;

/// Lets the calling thread run on `cpus` alone. Fails when one of them is not among those it may run on now.
pub fn pin_current_thread(cpus: &[usize]) -> Result<()> {
    let failed = |why: String| Error::internal(format!("a thread could not be pinned to the processors {cpus:?}"), why);
    let mask = rustix::thread::sched_getaffinity(None).map_err(|error| failed(error.to_string()))?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU || !mask.is_set(cpu) {
            return Err(failed(format!("{cpu} is not among those that this thread may run on")));
        }
        wanted.set(cpu);
    }
    if cpus.is_empty() {
        return Err(failed("there are none".into()));
    }
    rustix::thread::sched_setaffinity(None, &wanted).map_err(|error| failed(error.to_string()))
}

/// Makes the calling thread yield to others: `niceness` from 0 (as usual) to 19. Says whether that was possible.
pub fn lower_current_thread_priority(niceness: i32) -> bool {
    // On Linux "the calling process" of this call is the calling thread.
    rustix::process::setpriority_process(None, niceness).is_ok()
}
