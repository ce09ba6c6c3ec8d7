//! The decoders and encoders as server and runtime use them: bodies in, checked tensors out, and answers back, over plain
//! vectors in place of a tenant's domain.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod binary_requests;
#[cfg(test)]
mod errors_document;
#[cfg(test)]
mod json_requests;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod packed_requests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod tensor_data;
