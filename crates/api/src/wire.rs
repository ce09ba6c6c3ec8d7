//! The small JSON documents of the protocol besides inference: metadata, repository, health and errors. Types and their
//! reading only; what they say is the server's business, and the client reads the same types.

mod error;
mod health;
mod metadata;
mod repository;

use insula_core::{Code, Error, Result};
use serde::de::DeserializeOwned;

pub use error::{ErrorBody, Reason};
pub use health::{LiveBody, ModelReadyBody, ReadyBody};
pub use metadata::{ModelMetadata, ServerMetadata, TensorMetadata};
pub use repository::{
    RepositoryFile, RepositoryIndexEntry, RepositoryIndexRequest, RepositoryLoad, RepositoryState, RepositoryUnload,
    UnloadParameters,
};

/// The most bytes of a document that holds no model files.
pub const SMALL_DOCUMENT_BYTES: usize = 64 << 10;

/// Reads a small document; an empty body gives the default one, because the protocol's documents are optional. Fails with
/// [`Code::PayloadTooLarge`] or [`Code::InvalidArgument`].
pub fn small_document<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T> {
    if body.len() > SMALL_DOCUMENT_BYTES {
        return Err(Error::new(
            Code::PayloadTooLarge,
            format!("the body has {} bytes, this document may have {SMALL_DOCUMENT_BYTES}", body.len()),
        ));
    }
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| invalid(&error))
}

/// A reading error as the caller sees it.
fn invalid(error: &serde_json::Error) -> Error {
    let message: String = error.to_string().chars().take(200).collect();
    Error::invalid(format!("the body is not the expected JSON: {message}"))
}
