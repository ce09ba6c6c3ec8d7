//! How a run ends without outputs. The worker decides what that means for the requests in the batch.

use insula_core::{Code, Error};
use insula_kernels::IndexError;

/// Why a batch was not run to its end. Its outputs are then undefined, its inputs untouched: it can be run again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The stop point said so.
    #[error("the run was stopped")]
    Stopped,
    /// What was handed in does not fit the plan, or the plan does not fit itself: insula's own fault.
    #[error("the batch does not fit the plan: {0}")]
    Misfit(String),
    /// The request's own data cannot be computed with: an index beyond its axis.
    #[error("the request cannot be computed: {0}")]
    Invalid(String),
}

impl ExecError {
    pub(crate) fn misfit(what: impl Into<String>) -> ExecError {
        ExecError::Misfit(what.into())
    }
}

impl From<IndexError> for ExecError {
    fn from(error: IndexError) -> ExecError {
        ExecError::Invalid(error.to_string())
    }
}

impl From<ExecError> for Error {
    fn from(error: ExecError) -> Error {
        match error {
            ExecError::Stopped => Error::new(Code::Cancelled, "the run was stopped before it was done"),
            ExecError::Invalid(_) => Error::new(Code::InvalidArgument, error.to_string()),
            ExecError::Misfit(what) => {
                Error::internal("the request could not be computed because of a fault of the server", what)
            }
        }
    }
}
