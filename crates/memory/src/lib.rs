//! Isolated memory domains of tenants: the trust boundary. It owns each tenant's window of addresses with its guard gaps, its
//! limit and accounting, the leases that are the only way in, and the scrub when memory changes hands. It knows no request,
//! no format and no actor; runtime leases from it, and exec gets leases and slices.
//!
//! What is promised, exactly:
//! - The allocator gives every byte of a domain to one lease at a time, and no domain ever gives out another's bytes.
//! - What was written in one domain never shows in another, nor outlives its domain: it is zeroed when it leaves, by the
//!   reaper or by the system. Within a domain it is zeroed when the tenant's loop is idle, or before it is leased again
//!   ([`Scrub`]).
//! - A write that runs past an arena, or past a row of them, hits closed addresses and ends the process instead of reaching
//!   other memory. Within an arena the leases of the same tenant lie side by side.
//! - No window is unmapped while a lease of it is alive.
//!
//! It is no defence against hostile code inside the process: tenants send data and weights, never code.
//!
//! Unsafe code is in `backing`, `lease`, `scratch`, `domain::windows` and `zeroing_allocator`; the allocator holds offsets only.
//! The unit tests need no mapping, so that Miri can run them. To check the crate under the address sanitizer:
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test -p insula-memory --target x86_64-unknown-linux-gnu --target-dir target/asan
//! ```

mod allocator;
pub mod backing;
mod body;
mod budget;
mod domain;
mod geometry;
mod lease;
mod reaper;
mod refusal;
mod request_memory;
mod response_memory;
mod scratch;
#[cfg(test)]
mod test_config;
#[cfg(test)]
mod test_domain;
mod zeroing_allocator;

pub use backing::cpu::CpuBacking;
pub use backing::{Backing, Window};
pub use body::BodyBuffer;
pub use budget::{BudgetShare, BudgetUsage, HostBudget};
pub use domain::{Domain, DomainSettings, DomainUsage, Life, Scrub};
pub use geometry::{ARENA_BYTES, LINE_BYTES};
pub use lease::Lease;
pub use reaper::{DRAIN_PATIENCE, OverdueDomain, Reaper};
pub use request_memory::RequestMemory;
pub use response_memory::{OutputPlace, ResponseMemory};
pub use scratch::{POISON, Scratch};
pub use zeroing_allocator::ZeroingAllocator;
