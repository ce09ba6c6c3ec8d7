//! The host's memory as a backing: windows are closed mappings, committing opens arenas in them. Pages become resident when
//! first touched, as huge pages where the system has them, and stay out of core dumps. All of the crate's memory mapping
//! calls are here.

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use insula_core::{Error, Result};

use super::{Backing, Window};
use crate::geometry::ARENA_BYTES;
use crate::refusal;

/// The host's memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuBacking;

impl CpuBacking {
    /// The host's memory.
    pub fn new() -> CpuBacking {
        CpuBacking
    }
}

// SAFETY: a window is a private anonymous mapping of its own, unmapped in `release` only; opening part of it gives zero pages
// that stay there until `decommit` or `release`.
unsafe impl Backing for CpuBacking {
    fn host_accessible(&self) -> bool {
        true
    }

    fn reserve(&self, bytes: usize, numa_node: Option<u32>) -> Result<Window> {
        let window = map_closed(bytes)?;
        // inherited by every part that is opened later
        advise(&window, libc::MADV_HUGEPAGE, "MADV_HUGEPAGE", &HUGE_PAGES_WARNED);
        advise(&window, libc::MADV_DONTDUMP, "MADV_DONTDUMP", &DUMP_WARNED);
        if let Some(node) = numa_node {
            prefer_node(&window, node);
        }
        Ok(window)
    }

    fn commit(&self, window: &Window, range: Range<usize>) -> Result<()> {
        protect(window, &range, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn decommit(&self, window: &Window, range: Range<usize>) -> Result<()> {
        let address = within(window, &range)?;
        protect(window, &range, libc::PROT_NONE)?;
        // SAFETY: the range lies within a mapping of ours that has just been closed: nobody holds a slice of it.
        let done = unsafe { libc::madvise(address.as_ptr().cast(), range.len(), libc::MADV_DONTNEED) };
        if done == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        protect(window, &range, libc::PROT_READ | libc::PROT_WRITE)?;
        Err(refusal::system(range.len(), "madvise(MADV_DONTNEED)", &error))
    }

    fn scrub(&self, window: &Window, range: Range<usize>) {
        let Ok(address) = within(window, &range) else {
            tracing::error!(?range, window = window.bytes(), "scrub asked for outside its window");
            return;
        };
        // SAFETY: the range lies within the window and is committed, and the caller lets nobody else use it meanwhile.
        unsafe { ptr::write_bytes(address.as_ptr(), 0, range.len()) };
    }

    fn release(&self, window: Window) {
        // SAFETY: the window is a mapping of ours, given up by its only holder.
        let done = unsafe { libc::munmap(window.start().as_ptr().cast(), window.bytes()) };
        if done != 0 {
            tracing::error!(error = %io::Error::last_os_error(), bytes = window.bytes(), "a window could not be unmapped");
        }
    }
}

static HUGE_PAGES_WARNED: AtomicBool = AtomicBool::new(false);
static DUMP_WARNED: AtomicBool = AtomicBool::new(false);
static NODE_WARNED: AtomicBool = AtomicBool::new(false);

/// Maps `bytes` closed addresses that begin on an arena's boundary.
fn map_closed(bytes: usize) -> Result<Window> {
    let Some(mapped) = bytes.checked_add(ARENA_BYTES).filter(|_| bytes > 0 && bytes.is_multiple_of(ARENA_BYTES)) else {
        return Err(Error::internal(
            "memory could not be reserved",
            format!("a window of {bytes} bytes was asked for"),
        ));
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping, at an address of the kernel's choice, touches no memory of anybody's.
    let start = unsafe { libc::mmap(ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
    let start = match NonNull::new(start.cast::<u8>()) {
        Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => start,
        _ => return Err(refusal::system(mapped, "mmap", &io::Error::last_os_error())),
    };
    let lead = start.addr().get().next_multiple_of(ARENA_BYTES) - start.addr().get();
    // SAFETY: `lead` is below one arena and the mapping is an arena longer than `bytes`.
    let (aligned, end) = unsafe { (start.add(lead), start.add(lead + bytes)) };
    unmap_edge(start, lead);
    unmap_edge(end, ARENA_BYTES - lead);
    // SAFETY: these addresses are a mapping made here and known to nobody else.
    Ok(unsafe { Window::new(aligned, bytes) })
}

/// Unmaps what a fresh mapping has before or behind its aligned part.
fn unmap_edge(start: NonNull<u8>, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: called by `map_closed` only, for an edge of a mapping that it has just made and that nobody else knows.
    if unsafe { libc::munmap(start.as_ptr().cast(), bytes) } != 0 {
        tracing::warn!(error = %io::Error::last_os_error(), bytes, "the edge of a window stays reserved");
    }
}

fn within(window: &Window, range: &Range<usize>) -> Result<NonNull<u8>> {
    window
        .address(range)
        .ok_or_else(|| refusal::outside_windows(format!("{range:?} is outside a window of {} bytes", window.bytes())))
}

fn protect(window: &Window, range: &Range<usize>, protection: libc::c_int) -> Result<()> {
    let address = within(window, range)?;
    // SAFETY: the range lies within a mapping of ours; it is closed only when its holder has no slice of it left.
    match unsafe { libc::mprotect(address.as_ptr().cast(), range.len(), protection) } {
        0 => Ok(()),
        _ => Err(refusal::system(range.len(), "mprotect", &io::Error::last_os_error())),
    }
}

/// Advice that may be refused: without it the memory is slower or shows in core dumps, so it is worth one warning.
fn advise(window: &Window, advice: libc::c_int, name: &str, warned: &AtomicBool) {
    // SAFETY: neither advice used here changes the contents of the mapping, which is ours.
    let done = unsafe { libc::madvise(window.start().as_ptr().cast(), window.bytes(), advice) };
    if done != 0 && !warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(error = %io::Error::last_os_error(), "the system does not take {name} for tenant memory");
    }
}

/// Asks for pages of `node`. A node that is full lends from its neighbours instead of failing.
fn prefer_node(window: &Window, node: u32) {
    /// Enough for every node number that Linux has (`MAX_NUMNODES` is at most 1024).
    const WORDS: usize = 1024 / u64::BITS as usize;
    const MPOL_PREFERRED: libc::c_int = 1;
    let mut mask = [0u64; WORDS];
    let error = match mask.get_mut((node / u64::BITS) as usize) {
        None => io::Error::from_raw_os_error(libc::EINVAL),
        Some(word) => {
            *word = 1 << (node % u64::BITS);
            // the kernel counts one bit less than it is told
            let bits = WORDS * u64::BITS as usize + 1;
            let (start, length) = (window.start().as_ptr(), window.bytes());
            // SAFETY: the policy applies to a mapping of ours and the mask has as many bits as is said.
            let done = unsafe { libc::syscall(libc::SYS_mbind, start, length, MPOL_PREFERRED, mask.as_ptr(), bits, 0) };
            if done == 0 {
                return;
            }
            io::Error::last_os_error()
        }
    };
    if !NODE_WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(%error, node, "tenant memory cannot be bound to its home node");
    }
}
