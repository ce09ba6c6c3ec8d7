//! The ground floor: identifiers, data types, shapes, tensors, errors, the clock and the seam between decoders, encoders
//! and the memory they work on. It knows no format, no actor, no thread and does no input or output of its own.
//! Every other crate stands on it.
#![forbid(unsafe_code)]

pub mod clock;
pub mod codec;
pub mod dtype;
pub mod error;
pub mod ids;
pub mod quota;
pub mod request;
pub mod shape;
pub mod signature;
pub mod tensor;
pub mod validate;

pub use clock::{Clock, ManualClock, Nanos, SystemClock};
pub use codec::{Decode, Encode, EncodedHead, OutputTensor, TensorSink, TensorSource};
pub use dtype::DType;
pub use error::{Code, Error, Refusal, Result};
pub use ids::{KeyId, ModelName, RequestId, TenantId, Version};
pub use quota::Quota;
pub use request::{CheckedRequest, Outcome, RequestedOutput};
pub use shape::Shape;
pub use signature::{Dimension, ModelSignature, TensorSpec};
pub use tensor::{TensorSlot, TensorView};
pub use validate::{CheckedTensor, TensorClaim};
