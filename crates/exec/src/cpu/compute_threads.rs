//! The threads that compute beside a calling thread: made once, parked while there is nothing to do, joined when dropped.
//! They know closures, never plans, and decide nothing: what a run computes does not depend on how many of them take part.
//! The tiles of large steps run on them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use insula_core::{Error, Result};
use parking_lot::{Condvar, Mutex};

use crate::topology::pin_current_thread;

/// How often a thread looks before it parks: some tens of microseconds, longer than the small steps between two large ones.
const LOOKS: usize = 2000;

/// Compute threads that one run at a time can use.
#[derive(Debug)]
pub(super) struct ComputeThreads {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
    /// Whether some run has the helpers.
    taken: AtomicBool,
}

#[derive(Debug, Default)]
struct Shared {
    board: Mutex<Board>,
    /// Tells helpers of a new post, and the poster that the last helper is done.
    changed: Condvar,
    /// The number of posts, to look at without the lock.
    posts: AtomicU64,
    /// Helpers at work, to look at without the lock.
    at_work: AtomicUsize,
}

#[derive(Debug, Default)]
struct Board {
    work: Option<Work>,
    posts: u64,
    parked: usize,
    panic: Option<Box<dyn Any + Send>>,
    closing: bool,
}

/// A borrowed closure whose lifetime is kept by [`Posted`] instead of by its type.
#[derive(Debug, Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: the closure is `Sync`, so calling it from other threads is what it is for.
unsafe impl Send for Work {}

impl ComputeThreads {
    /// None but the calling thread.
    pub(super) fn alone() -> ComputeThreads {
        ComputeThreads { shared: Arc::default(), helpers: Vec::new(), taken: AtomicBool::new(false) }
    }

    /// `count` threads in all, the calling one among them; the others run on `cpus` alone, or anywhere if there are none. Fails
    /// when the system gives no more threads.
    pub(super) fn start(count: usize, cpus: &[usize]) -> Result<ComputeThreads> {
        let mut threads = ComputeThreads::alone();
        for index in 1..count {
            let (shared, cpus) = (Arc::clone(&threads.shared), cpus.to_vec());
            let named = std::thread::Builder::new().name(format!("compute-{index}"));
            let started = named.spawn(move || {
                if !cpus.is_empty() {
                    // Where it is not allowed the thread computes all the same, only less well placed.
                    let _ = pin_current_thread(&cpus);
                }
                shared.help();
            });
            let failed =
                |error: std::io::Error| Error::internal("a compute thread could not be started", error.to_string());
            threads.helpers.push(started.map_err(failed)?);
        }
        Ok(threads)
    }

    /// How many threads there are, the calling one among them.
    pub(super) fn count(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Calls `own` on the calling thread and meanwhile `helping` on any number of the others, or on none when another run has
    /// them. Returns when all calls have; panics when one of them did.
    pub(super) fn run<T>(&self, helping: &(dyn Fn() + Sync), own: impl FnOnce() -> T) -> T {
        if self.helpers.is_empty() || self.taken.swap(true, Ordering::Acquire) {
            return own();
        }
        let posted = Posted::new(self, helping);
        let result = own();
        match posted.finish() {
            Some(panic) => resume_unwind(panic),
            None => result,
        }
    }
}

impl Drop for ComputeThreads {
    fn drop(&mut self) {
        self.shared.board.lock().closing = true;
        self.shared.changed.notify_all();
        for helper in self.helpers.drain(..) {
            // Helpers catch panics, so there is nothing to hear of one.
            let _ = helper.join();
        }
    }
}

/// A closure on the board. While it lives the closure is borrowed, and before it is gone no thread has the closure any more.
struct Posted<'a> {
    threads: &'a ComputeThreads,
}

impl<'a> Posted<'a> {
    fn new(threads: &'a ComputeThreads, helping: &'a (dyn Fn() + Sync)) -> Posted<'a> {
        // SAFETY: only the lifetime changes. `Posted` borrows the closure for as long as it lives, is never leaked (it does not
        // leave `ComputeThreads::run`), and takes the closure off the board and waits for its last caller when it is dropped.
        let work = unsafe { std::mem::transmute::<&'a (dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(helping) };
        let shared = &threads.shared;
        let mut board = shared.board.lock();
        board.work = Some(Work(work));
        board.posts += 1;
        shared.posts.store(board.posts, Ordering::Release);
        if board.parked > 0 {
            shared.changed.notify_all();
        }
        drop(board);
        Posted { threads }
    }

    /// Waits for the helpers; gives the panic of one of them.
    fn finish(self) -> Option<Box<dyn Any + Send>> {
        self.take_down()
    }

    /// Takes the closure off the board and waits until nobody is in it.
    fn take_down(&self) -> Option<Box<dyn Any + Send>> {
        let shared = &self.threads.shared;
        // Who has not begun by now need not.
        shared.board.lock().work = None;
        for _ in 0..LOOKS {
            if shared.at_work.load(Ordering::Acquire) == 0 {
                break;
            }
            std::hint::spin_loop();
        }
        let mut board = shared.board.lock();
        while shared.at_work.load(Ordering::Acquire) > 0 {
            shared.changed.wait(&mut board);
        }
        board.panic.take()
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        self.take_down();
        self.threads.taken.store(false, Ordering::Release);
    }
}

impl Shared {
    /// A helper's life.
    fn help(&self) {
        let mut seen = 0;
        while let Some(work) = self.next(&mut seen) {
            // SAFETY: `next` counted this thread as at work while the closure was on the board, and the poster does not return
            // before that count is zero again: the closure is alive.
            let called = catch_unwind(AssertUnwindSafe(|| unsafe { (*work.0)() }));
            let mut board = self.board.lock();
            if let Err(panic) = called {
                board.panic = Some(panic);
            }
            if self.at_work.fetch_sub(1, Ordering::Release) == 1 {
                self.changed.notify_all();
            }
        }
    }

    /// Waits for a post after the one `seen`; counts the calling thread as at work on it. `None` at the end.
    fn next(&self, seen: &mut u64) -> Option<Work> {
        loop {
            for _ in 0..LOOKS {
                if self.posts.load(Ordering::Acquire) != *seen {
                    break;
                }
                std::hint::spin_loop();
            }
            let mut board = self.board.lock();
            while board.posts == *seen && !board.closing {
                board.parked += 1;
                self.changed.wait(&mut board);
                board.parked -= 1;
            }
            if board.closing {
                return None;
            }
            *seen = board.posts;
            if let Some(work) = board.work {
                self.at_work.fetch_add(1, Ordering::Relaxed);
                return Some(work);
            }
        }
    }
}

#[cfg(test)]
mod tests;
