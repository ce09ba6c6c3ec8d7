//! Rules and instruments for insula's own tests: the tidy checks of the source tree, the ONNX node tests, a device under a
//! test's control, and a house with tenants that a test can ask. Only a dev-dependency of others; nothing that ships may
//! depend on it.
#![forbid(unsafe_code)]

pub mod house;
pub mod node_tests;
pub mod tidy;
pub mod varying_model;
pub mod watched_device;
