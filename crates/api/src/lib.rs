//! The Open Inference Protocol v2 on the wire: decoders and encoders for REST JSON and the binary tensor extension, the
//! documents of the other endpoints, and what each error code is called outside. The only crate besides server that knows
//! JSON. It reads no socket, owns no tensor memory and runs nothing; server and client call it.
#![forbid(unsafe_code)]

mod decode;
mod encode;
mod format;
mod json;
pub mod status;
pub mod wire;

pub use decode::decoder;
pub use format::{ContentEncoding, INFERENCE_HEADER_CONTENT_LENGTH, RequestFormat};
