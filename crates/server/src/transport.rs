//! What lies under HTTP: listening sockets, the threads that serve connections, and the stream that bounds what a caller
//! can make us hold or wait for. It knows no key, no route and no tenant. The callers' and the admin listener both stand
//! on it.

pub(crate) mod connection;
pub(crate) mod linger;
pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod registry;
pub(crate) mod stream;
pub(crate) mod workers;

#[cfg(test)]
mod tests;
