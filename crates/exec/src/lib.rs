//! Devices: what lowers a model's logical plan to kernel calls and runs it, and what the machine looks like. It owns packed
//! weights and lowered plans; memory for runs is handed in, and so are tenants' inputs and outputs, as slices that it never
//! keeps. It knows no tenant, queue or request. The runtime's workers and the loader call it.

mod batch;
pub mod cpu;
mod device;
mod error;
pub mod topology;

pub use batch::{BatchIo, EntryIo, StopPoint};
pub use cpu::CpuDevice;
pub use device::{Device, DeviceKind, LoweredPlan, Weights};
pub use error::ExecError;
pub use topology::Topology;
