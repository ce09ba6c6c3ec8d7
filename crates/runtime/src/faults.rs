//! Faults that a test build can arm: the next passes of a point panic or stall. Without the feature `fault-injection`
//! nothing can be armed and [`Faults::hit`] is empty. Actors call `hit`, tests call `arm`.

use std::fmt;

/// Where a fault can strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum FaultPoint {
    /// In a decoder's step, inside the guard that fails only its request.
    Decode,
    /// In the tenant actor's handler, outside every guard: the actor dies.
    TenantHandler,
    /// In the router's handler: the router dies.
    Router,
    /// In the fair queue, under the scheduler's lock.
    Batcher,
    /// In the worker's loop, outside a batch: the worker dies.
    Worker,
}

#[cfg(feature = "fault-injection")]
mod armed {
    use super::FaultPoint;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Counts of passes still to be struck, by point.
    #[derive(Default)]
    pub struct Faults {
        panics: [AtomicUsize; 5],
        stall: parking_lot::Mutex<Option<Duration>>,
    }

    impl Faults {
        /// Lets the next `times` passes of `point` panic.
        pub fn arm(&self, point: FaultPoint, times: usize) {
            self.panics[point as usize].store(times, Ordering::SeqCst);
        }

        /// Lets the next pass of the tenant's handler block its loop for `time`.
        pub fn arm_stall(&self, time: Duration) {
            *self.stall.lock() = Some(time);
        }

        /// Passes `point`; panics or blocks if armed.
        #[expect(clippy::panic, reason = "panicking is what an armed fault is for")]
        pub fn hit(&self, point: FaultPoint) {
            // taken in a statement of its own: the lock must not be held through the sleep
            let stall = if point == FaultPoint::TenantHandler { self.stall.lock().take() } else { None };
            if let Some(time) = stall {
                std::thread::sleep(time);
            }
            let left = self.panics[point as usize]
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if left.is_ok() {
                panic!("an injected fault struck at {point:?}");
            }
        }
    }
}

#[cfg(not(feature = "fault-injection"))]
mod armed {
    /// Nothing can be armed in this build.
    #[derive(Default)]
    pub struct Faults {
        _nothing: (),
    }

    impl Faults {
        /// Does nothing.
        #[inline(always)]
        pub fn hit(&self, _: super::FaultPoint) {}
    }
}

pub use armed::Faults;

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}
