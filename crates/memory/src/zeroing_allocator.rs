//! A global allocator that zeroes memory as it is freed. Libraries pass requests and answers through heap blocks of their own;
//! with it no block that is used again, by any tenant, shows what was in it. The binary installs it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

/// Zeroes every block before `A` gets it back.
#[derive(Debug, Default, Clone, Copy)]
pub struct ZeroingAllocator<A = System> {
    inner: A,
}

impl<A> ZeroingAllocator<A> {
    /// Wraps `inner`.
    pub const fn new(inner: A) -> ZeroingAllocator<A> {
        ZeroingAllocator { inner }
    }
}

// SAFETY: every block comes from `inner` and goes back to it with the layout it was made with; in between it is only zeroed
// when its owner has given it up.
unsafe impl<A: GlobalAlloc> GlobalAlloc for ZeroingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives up a block of this layout, so nobody else uses it and `inner` made it.
        unsafe {
            zero(block, layout.size());
            self.inner.dealloc(block, layout);
        }
    }

    /// Always moves: `inner` alone would free the old block unseen, or leave the end of a shortened one as it is.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size`, rounded up to the alignment, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller promises that `new_size` is not zero.
        let moved = unsafe { self.inner.alloc(new_layout) };
        if !moved.is_null() {
            // SAFETY: both blocks have at least so many bytes and do not overlap; then the old one is given up, as in `dealloc`.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

/// Zeroes `length` bytes in a way the compiler keeps although they are freed next.
///
/// # Safety
///
/// The bytes must be writable and nobody else's.
unsafe fn zero(block: *mut u8, length: usize) {
    // SAFETY: by the caller.
    unsafe { ptr::write_bytes(block, 0, length) };
    keep_writes_to(block);
}

/// Makes the compiler believe that what lies at `block` is read here: writes before it stay. No instruction comes of it.
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
fn keep_writes_to(block: *mut u8) {
    // SAFETY: the assembly is empty. Without `nomem` the compiler must assume that it reads through the pointer.
    unsafe { std::arch::asm!("/* {0} */", in(reg) block, options(nostack, preserves_flags)) };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn keep_writes_to(block: *mut u8) {
    std::hint::black_box(block);
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(test)]
mod tests;
