//! Real servers on port 0, spoken to over raw sockets: what callers are promised, theme by theme.
#![cfg(test)]

mod access_log;
mod admin_port;
mod binary_tensors;
mod cancellation;
mod counting;
mod faces;
mod hostile_bodies;
mod keys;
mod model_files;
mod model_loading;
mod outputs;
mod overload;
mod running_server;
mod shapes_and_data;
mod slow_callers;
mod stopping;
mod tensors;
mod versions;
mod wire;
mod wrong_protocols;
