//! With the zeroing allocator installed, freed heap memory holds nothing of what was in it: read through the system, as
//! somebody with a stale pointer or a core dump would.
#![cfg(all(not(miri), target_os = "linux"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use insula_memory::ZeroingAllocator;

#[global_allocator]
static ALLOCATOR: ZeroingAllocator<System> = ZeroingAllocator::new(System);

const BYTES: usize = 50_000;
/// The system's allocator keeps its own notes in the first bytes of a freed block.
const NOTES: usize = 64;

/// Held by a test, so that no other one's blocks end up where it looks.
static ALONE: Mutex<()> = Mutex::new(());

/// Looks at memory without touching it as this program's own. What it needs is allocated before there is anything to see,
/// so that it does not end up where it is to look.
struct Onlooker {
    memory: File,
    seen: Vec<u8>,
}

impl Onlooker {
    fn new() -> Onlooker {
        Onlooker { memory: File::open("/proc/self/mem").expect("this process's memory"), seen: vec![0; BYTES - NOTES] }
    }

    /// How many of the bytes of the block at `address` equal `byte`.
    fn count(&mut self, address: usize, byte: u8) -> usize {
        self.memory.read_exact_at(&mut self.seen, (address + NOTES) as u64).expect("mapped memory");
        self.seen.iter().filter(|seen| **seen == byte).count()
    }
}

/// Allocates a block by `allocator`, fills it with `byte`, frees it, and counts what is still there. A second block behind it
/// keeps the first from being given back to the system.
fn left_by(allocator: &impl GlobalAlloc, byte: u8) -> usize {
    let mut onlooker = Onlooker::new();
    let layout = Layout::from_size_align(BYTES, 16).expect("a layout");
    // SAFETY: both blocks are of this layout, filled within it and freed once.
    unsafe {
        let (block, behind) = (allocator.alloc(layout), System.alloc(layout));
        block.write_bytes(byte, BYTES);
        assert!(onlooker.count(block.addr(), byte) == BYTES - NOTES);
        allocator.dealloc(block, layout);
        let left = onlooker.count(block.addr(), byte);
        System.dealloc(behind, layout);
        left
    }
}

#[test]
fn a_freed_block_is_zero_and_without_the_allocator_it_is_not() {
    let _alone = ALONE.lock();
    assert_eq!(left_by(&ALLOCATOR, 0xA7), 0);
    assert!(left_by(&System, 0xA9) > BYTES / 2, "a plain allocator leaves the block as it was");
}

#[test]
fn text_that_has_moved_or_was_dropped_is_gone() {
    let _alone = ALONE.lock();
    let mut onlooker = Onlooker::new();
    let mut text = String::with_capacity(BYTES);
    text.extend(std::iter::repeat_n('\u{7e}', BYTES));
    let first = text.as_ptr().addr();
    let behind = vec![1u8; BYTES];
    text.reserve_exact(BYTES);
    let second = text.as_ptr().addr();
    let kept = onlooker.count(second, 0x7e);
    assert!(first != second && kept == BYTES - NOTES);
    assert_eq!(onlooker.count(first, 0x7e), 0);
    drop(text);
    assert_eq!(onlooker.count(second, 0x7e), 0);
    drop(behind);
}
