//! Rules and instruments for insula's own tests: the tidy checks of the source tree, a synthetic device, fixtures and a
//! client for a server under test. Only a dev-dependency of others; nothing that ships may depend on it.
#![forbid(unsafe_code)]

pub mod tidy;
