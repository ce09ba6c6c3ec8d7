//! The CPU device from ONNX files to outputs: against stored answers of another engine, against a plain interpreter of
//! operations, and against itself in other batches.
#![cfg(test)]

mod batches;
mod digits;
mod interpreter;
mod loaded_model;
mod loading;
mod movements;
mod network;
mod networks;
mod operations;
mod slow;
mod threads;
