//! The allocator over one that looks at every block it gets back.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Counts blocks that come back, and those of them that are not all zero.
#[derive(Default)]
struct Inspector {
    returned: AtomicUsize,
    dirty: AtomicUsize,
    fail: AtomicUsize,
}

// SAFETY: all requests go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Inspector {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.fail.load(Ordering::Relaxed) != 0 {
            return ptr::null_mut();
        }
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.returned.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the tests here initialise every block before they free it.
        let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
        if bytes.iter().any(|byte| *byte != 0) {
            self.dirty.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocates a block through `allocator` and fills it.
fn filled(allocator: &impl GlobalAlloc, layout: Layout) -> *mut u8 {
    // SAFETY: the layout is not empty, and the block has as many bytes.
    unsafe {
        let block = allocator.alloc(layout);
        assert!(!block.is_null());
        block.write_bytes(0xA7, layout.size());
        block
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap()
}

#[test]
fn every_block_comes_back_zeroed() {
    let allocator = ZeroingAllocator::new(Inspector::default());
    for size in [1, 7, 16, 100, 4096, 100_000] {
        let block = filled(&allocator, layout(size));
        // SAFETY: the block was allocated with this layout just now.
        unsafe { allocator.dealloc(block, layout(size)) };
    }
    let Inspector { returned, dirty, .. } = allocator.inner;
    assert_eq!((returned.into_inner(), dirty.into_inner()), (6, 0));
}

#[test]
fn the_inspector_finds_what_is_not_zeroed() {
    let inspector = Inspector::default();
    let block = filled(&inspector, layout(100));
    // SAFETY: the block was allocated with this layout just now.
    unsafe { inspector.dealloc(block, layout(100)) };
    assert_eq!(inspector.dirty.into_inner(), 1);
}

#[test]
fn a_block_that_changes_size_keeps_its_contents_and_leaves_none_behind() {
    let allocator = ZeroingAllocator::new(Inspector::default());
    for (old, new) in [(100, 5000), (5000, 100), (64, 64), (1, 2)] {
        let block = filled(&allocator, layout(old));
        // SAFETY: the block was allocated with this layout, and the new size is not zero.
        let moved = unsafe { allocator.realloc(block, layout(old), new) };
        let kept = old.min(new);
        // SAFETY: `realloc` keeps as many bytes as both blocks have.
        let bytes = unsafe { std::slice::from_raw_parts(moved, kept) };
        assert!(bytes.iter().all(|byte| *byte == 0xA7));
        // SAFETY: the moved block has the new size.
        unsafe {
            moved.write_bytes(0xA7, new);
            allocator.dealloc(moved, layout(new));
        }
    }
    let Inspector { returned, dirty, .. } = allocator.inner;
    assert_eq!((returned.into_inner(), dirty.into_inner()), (8, 0));
}

#[test]
fn a_block_that_cannot_grow_stays_as_it_was() {
    let allocator = ZeroingAllocator::new(Inspector::default());
    let block = filled(&allocator, layout(100));
    allocator.inner.fail.store(1, Ordering::Relaxed);
    // SAFETY: the block was allocated with this layout, and the new size is not zero.
    let moved = unsafe { allocator.realloc(block, layout(100), 200) };
    assert!(moved.is_null());
    // SAFETY: a failed `realloc` leaves the block with its owner.
    let bytes = unsafe { std::slice::from_raw_parts(block, 100) };
    assert!(bytes.iter().all(|byte| *byte == 0xA7));
    // SAFETY: the block was allocated with this layout.
    unsafe { allocator.dealloc(block, layout(100)) };
}

#[test]
fn zeroed_blocks_are_zero() {
    let allocator = ZeroingAllocator::new(System);
    // SAFETY: the layout is not empty; the block is read and freed with the same layout.
    let all_zero = unsafe {
        let block = allocator.alloc_zeroed(layout(1000));
        let all_zero = std::slice::from_raw_parts(block, 1000).iter().all(|byte| *byte == 0);
        allocator.dealloc(block, layout(1000));
        all_zero
    };
    assert!(all_zero);
}
