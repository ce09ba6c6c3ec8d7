//! What the model crate promises, through its public face: ONNX files made in memory, loaded, planned, and run by a plain
//! interpreter that shares no code with any device.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what the tests share fails as tests do")]

mod builder;
mod classes;
mod examples;
mod fusions;
mod hostile;
mod interpreter;
mod layouts;
mod loading;
mod movements;
mod operators;
mod patterns;
mod precisions;
mod refusals;
mod repositories;
mod sizes;
