//! The house itself: one actor a tenant with its own loop and memory domain, one router that places models on shards,
//! pinned workers that pull batches from fair queues. It knows no format and no protocol: bodies reach it as bytes and a
//! decoder, answers leave it as outputs and an encoder. Server and embedders call [`runtime::Runtime`] and [`tenant::TenantHandle`].
#![forbid(unsafe_code)]

#[cfg(not(loom))]
pub use insula_memory::ZeroingAllocator;

pub mod fair_queue;
pub mod job;
pub mod shard;

#[cfg(not(loom))]
pub mod admission;
#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
pub mod faults;
#[cfg(not(loom))]
pub mod loader;
#[cfg(not(loom))]
pub mod model;
#[cfg(not(loom))]
pub mod payload;
#[cfg(not(loom))]
pub mod plans;
#[cfg(not(loom))]
pub mod reply;
#[cfg(not(loom))]
pub mod router;
#[cfg(not(loom))]
pub mod runtime;
#[cfg(not(loom))]
pub mod services;
#[cfg(not(loom))]
pub mod settings;
#[cfg(not(loom))]
pub mod spawner;
#[cfg(not(loom))]
pub mod supervision;
#[cfg(not(loom))]
pub mod tenant;
#[cfg(not(loom))]
pub mod worker;
