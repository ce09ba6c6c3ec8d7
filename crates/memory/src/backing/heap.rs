//! A backing for tests that need no mapping, and so run under Miri: windows are heap blocks. It keeps released windows as
//! they are and hands them out again, as a device with a pool of its own may: only the scrub at the border stands between
//! two domains.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;

use insula_core::{Error, Result};
use parking_lot::Mutex;

use super::{Backing, Window};
use crate::geometry::ARENA_BYTES;

/// Windows on the heap, used again without being cleared.
#[derive(Debug, Default)]
pub(crate) struct HeapBacking {
    released: Mutex<Vec<Window>>,
    /// How many more commits succeed, if that is limited.
    pub commits_left: Mutex<Option<u32>>,
}

impl HeapBacking {
    /// Bytes, anywhere in released windows, that equal `byte`.
    pub(crate) fn count_in_released(&self, byte: u8) -> usize {
        let released = self.released.lock();
        released.iter().map(|window| bytes_of(window).iter().filter(|found| **found == byte).count()).sum()
    }
}

// SAFETY: a window is a heap block of its own, readable and writable until the backing is dropped; fresh ones are zero and used
// ones are scrubbed by their domain before they are released (the tests here that do without never promise zero).
unsafe impl Backing for HeapBacking {
    fn host_accessible(&self) -> bool {
        true
    }

    fn reserve(&self, bytes: usize, _numa_node: Option<u32>) -> Result<Window> {
        let mut released = self.released.lock();
        if let Some(index) = released.iter().position(|window| window.bytes() == bytes) {
            return Ok(released.swap_remove(index));
        }
        // SAFETY: the layout is not empty; the block belongs to the window alone.
        let start = unsafe { alloc_zeroed(layout(bytes)) };
        let start = NonNull::new(start).ok_or_else(|| Error::internal("no heap left", ""))?;
        // SAFETY: the block of `bytes` bytes was allocated just now.
        Ok(unsafe { Window::new(start, bytes) })
    }

    fn commit(&self, window: &Window, range: Range<usize>) -> Result<()> {
        assert!(window.address(&range).is_some());
        assert!(range.start.is_multiple_of(ARENA_BYTES) && range.len().is_multiple_of(ARENA_BYTES));
        match &mut *self.commits_left.lock() {
            Some(0) => {
                Err(crate::refusal::system(range.len(), "commit", &std::io::Error::from_raw_os_error(libc::ENOMEM)))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn decommit(&self, window: &Window, range: Range<usize>) -> Result<()> {
        self.scrub(window, range);
        Ok(())
    }

    fn scrub(&self, window: &Window, range: Range<usize>) {
        let start = window.address(&range).expect("a range of the window");
        // SAFETY: the range lies within the block, and the caller lets nobody else use it meanwhile.
        unsafe { start.as_ptr().write_bytes(0, range.len()) };
    }

    fn release(&self, window: Window) {
        self.released.lock().push(window);
    }
}

impl Drop for HeapBacking {
    fn drop(&mut self) {
        for window in self.released.get_mut().drain(..) {
            // SAFETY: the block was allocated with this layout and its last holder has given it back.
            unsafe { dealloc(window.start().as_ptr(), layout(window.bytes())) };
        }
    }
}

fn bytes_of(window: &Window) -> &[u8] {
    // SAFETY: the block is initialised over its whole length, and a released window is used by nobody.
    unsafe { std::slice::from_raw_parts(window.start().as_ptr(), window.bytes()) }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 4096).expect("a window's size is a valid layout")
}
