//! The figures of the fair queue, in one place. Changing one changes a promise of the specification: the bounds in the
//! property tests are computed from them.

use std::time::Duration;

/// C on a CPU: the device time a batch may take while it is made of several entries.
pub const CPU_SLICE: Duration = Duration::from_millis(5);

/// C on a GPU.
pub const GPU_SLICE: Duration = Duration::from_millis(10);

/// An entry of another tenant rides along while its start tag is at most this many slices (over its weight) after V.
pub const RIDE_SLICES: u64 = 2;

/// How many measurements the moving median of a bucket looks back on.
pub const ESTIMATE_WINDOW: usize = 9;

/// How many plans a generation of estimates holds; at most two generations are kept, the older one is forgotten first.
/// Plans are named by the shapes that callers choose, so their number must not grow without end.
pub const ESTIMATE_PLANS: usize = 1024;

/// How many tenants that cannot ride a batch are looked past while it is formed, and how many that are held back for
/// more rows while its leader is chosen: a bound on the work under the scheduler's lock.
pub const LOOK_AHEAD: usize = 64;

/// How many entries that turn out cancelled or late are dropped in one go under the scheduler's lock.
pub const DROPS_AT_ONCE: usize = 64;
