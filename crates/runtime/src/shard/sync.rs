//! The synchronisation that the job cell and the shard are built on: std and parking_lot, or loom's models of them under
//! `cfg(loom)`. Nothing else in those modules may name an atomic, a lock or an intake, or loom would not see it.

#[cfg(not(loom))]
mod primitives {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    pub use parking_lot::{Mutex, MutexGuard};
    pub use std::sync::Arc;
    pub use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};

    /// An unbounded lock-free queue. What bounds it is the places that its entries hold.
    #[derive(Debug)]
    pub struct Intake<T>(crossbeam_queue::SegQueue<T>);

    impl<T> Default for Intake<T> {
        fn default() -> Self {
            Intake(crossbeam_queue::SegQueue::new())
        }
    }

    impl<T> Intake<T> {
        /// Adds an item at the back.
        pub fn push(&self, item: T) {
            self.0.push(item);
        }

        /// Takes out all that is there, front first.
        pub fn drain(&self, mut take: impl FnMut(T)) {
            while let Some(item) = self.0.pop() {
                take(item);
            }
        }

        /// How many items are there.
        pub fn len(&self) -> usize {
            self.0.len()
        }

        /// Whether nothing is there.
        pub fn is_empty(&self) -> bool {
            self.0.is_empty()
        }
    }

    /// A flag that one thread sleeps for and others raise.
    #[derive(Debug, Default)]
    pub struct Token {
        raised: Mutex<bool>,
        changed: parking_lot::Condvar,
    }

    impl Token {
        /// Raises the token and wakes its sleeper.
        pub fn raise(&self) {
            *self.raised.lock() = true;
            self.changed.notify_one();
        }

        /// Sleeps until the token is raised or `timeout` is over, and lowers it.
        pub fn wait(&self, timeout: Option<Duration>) {
            let mut raised = self.raised.lock();
            match timeout {
                Some(timeout) => {
                    self.changed.wait_while_for(&mut raised, |raised| !*raised, timeout);
                }
                None => self.changed.wait_while(&mut raised, |raised| !*raised),
            }
            *raised = false;
        }
    }

    /// Runs `work`; `None` if it panicked.
    pub fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(work)).ok()
    }
}

#[cfg(loom)]
mod primitives {
    use std::collections::VecDeque;
    use std::time::Duration;

    pub use loom::sync::MutexGuard;
    pub use loom::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
    // The standard one's counting needs no proof, and as a model it would double the interleavings.
    pub use std::sync::Arc;

    /// loom's mutex with the interface of parking_lot's.
    #[derive(Debug)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// A free mutex.
        pub fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("loom's mutexes are never poisoned: its models do not survive a panic")
        }

        /// Takes the lock if it is free.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    /// Stands for the lock-free queue, whose own workings are not modelled. What others see of it is one atomic, its length;
    /// looking whether something is there orders nothing: less than the real queue promises.
    #[derive(Debug)]
    pub struct Intake<T> {
        items: parking_lot::Mutex<VecDeque<T>>,
        length: AtomicUsize,
    }

    impl<T> Default for Intake<T> {
        fn default() -> Self {
            Intake { items: parking_lot::Mutex::new(VecDeque::new()), length: AtomicUsize::new(0) }
        }
    }

    impl<T> Intake<T> {
        /// Adds an item at the back.
        pub fn push(&self, item: T) {
            self.items.lock().push_back(item);
            self.length.fetch_add(1, Ordering::Release);
        }

        /// Takes out all that is there, front first.
        pub fn drain(&self, take: impl FnMut(T)) {
            // To miss a push under way here is the same as to come before it, so the latest length will do.
            let count = self.length.swap(0, Ordering::Acquire);
            let drained: Vec<T> = self.items.lock().drain(..count).collect();
            drained.into_iter().for_each(take);
        }

        /// Whether nothing is there.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// How many items are there.
        pub fn len(&self) -> usize {
            self.length.load(Ordering::Relaxed)
        }
    }

    /// A flag that one thread sleeps for and others raise.
    #[derive(Debug)]
    pub struct Token(loom::sync::Notify);

    impl Default for Token {
        fn default() -> Self {
            Token(loom::sync::Notify::new())
        }
    }

    impl Token {
        /// Raises the token and wakes its sleeper.
        pub fn raise(&self) {
            self.0.notify();
        }

        /// Sleeps until the token is raised, and lowers it. Time does not pass in a model.
        pub fn wait(&self, _timeout: Option<Duration>) {
            self.0.wait();
        }
    }

    /// Runs `work`. A panic in a model is a finding and goes up.
    pub fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
        Some(work())
    }
}

pub use primitives::*;
