//! Tenant documents on disk: what a tenant's TOML file may say, and the folder that holds one file a tenant. It only
//! reads: it opens no socket, starts no thread, writes no file and keeps no state. The server reads the folder through it
//! and hands the documents to the runtime.
#![forbid(unsafe_code)]

pub mod byte_size;
pub mod demo;
pub mod document;
pub mod folder;
pub mod key;

pub use demo::is_demo_key;
pub use document::{DocumentFaults, EventLoop, Fault, Isolation, ModelGrant, Precision, TenantDocument, TenantState};
pub use folder::{DocumentFault, TenantsFolder};
pub use key::{KeyRecord, hash_key};
