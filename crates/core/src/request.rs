//! A request that has passed the wall: its tensors, the outputs it wants and how its answer is encoded. Decoders
//! assemble it; runtime batches it. It knows no format.

use std::fmt;
use std::time::Duration;

use crate::codec::Encode;
use crate::error::{Error, Result};
use crate::signature::ModelSignature;
use crate::validate::CheckedTensor;

/// An output the caller wants, by its position in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedOutput {
    /// The position in [`ModelSignature::outputs`].
    pub output: usize,
}

/// A whole request, ready for a shard.
pub struct CheckedRequest {
    inputs: Vec<CheckedTensor>,
    outputs: Vec<RequestedOutput>,
    rows: usize,
    /// 0 is the default, 1 the most urgent; orders only the tenant's own requests.
    pub priority: u32,
    /// A shorter deadline than the tenant's, counted from the request's arrival.
    pub timeout: Option<Duration>,
    /// How the answer is written.
    pub reply: Box<dyn Encode>,
}

impl CheckedRequest {
    /// Puts the parts together: every input exactly once, all with the same number of rows, no more than the model takes,
    /// no output twice. `inputs` may come in any order and are brought into the model's. Empty `outputs` means all.
    pub fn assemble(
        signature: &ModelSignature,
        mut inputs: Vec<CheckedTensor>,
        mut outputs: Vec<RequestedOutput>,
        reply: Box<dyn Encode>,
    ) -> Result<CheckedRequest> {
        inputs.sort_by_key(CheckedTensor::input);
        for (index, spec) in signature.inputs.iter().enumerate() {
            match inputs.iter().filter(|tensor| tensor.input() == index).count() {
                1 => {}
                0 => return Err(Error::invalid(format!("input `{}` is missing", spec.name))),
                n => {
                    return Err(Error::invalid(format!(
                        "input `{}` is given {n} times, it must be given once",
                        spec.name
                    )));
                }
            }
        }
        let rows = count_rows(signature, &inputs)?;
        if outputs.is_empty() {
            outputs = (0..signature.outputs.len()).map(|output| RequestedOutput { output }).collect();
        }
        for (index, wanted) in outputs.iter().enumerate() {
            let Some(spec) = signature.outputs.get(wanted.output) else {
                return Err(Error::invalid(format!("output number {} does not exist", wanted.output)));
            };
            if outputs[..index].contains(wanted) {
                return Err(Error::invalid(format!("output `{}` is asked for twice", spec.name)));
            }
        }
        Ok(CheckedRequest { inputs, outputs, rows, priority: 0, timeout: None, reply })
    }

    /// The tensors, in the order of the model's inputs.
    pub fn inputs(&self) -> &[CheckedTensor] {
        &self.inputs
    }

    /// The outputs wanted, in the order they were asked for.
    pub fn outputs(&self) -> &[RequestedOutput] {
        &self.outputs
    }

    /// How many rows (1 for a model that is not batched).
    pub fn rows(&self) -> usize {
        self.rows
    }
}

fn count_rows(signature: &ModelSignature, inputs: &[CheckedTensor]) -> Result<usize> {
    if !signature.batched {
        return Ok(1);
    }
    let rows_of = |tensor: &CheckedTensor| tensor.shape().dims().first().copied().unwrap_or(1);
    let rows = inputs.first().map_or(1, rows_of);
    for tensor in inputs {
        if rows_of(tensor) != rows {
            let name = |input: usize| signature.inputs.get(input).map_or("", |spec| &spec.name);
            return Err(Error::invalid(format!(
                "input `{}` has {} rows and input `{}` has {rows}: all inputs need the same first dimension",
                name(tensor.input()),
                rows_of(tensor),
                name(inputs[0].input()),
            )));
        }
    }
    if rows > signature.max_batch {
        return Err(Error::invalid(format!(
            "the request has {rows} rows, the model takes at most {} a request: split it",
            signature.max_batch
        )));
    }
    Ok(rows)
}

impl fmt::Debug for CheckedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedRequest")
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// How a request ended: exactly one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Answered with the model's outputs.
    Success,
    /// Refused because of what the caller sent (4xx other than 429).
    Invalid,
    /// Refused by a limit or because the server could not take it (429, 503).
    Refused,
    /// Failed through a fault of insula's own (5xx).
    Failed,
    /// The caller went away first.
    Cancelled,
    /// The deadline passed first.
    Expired,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 6] =
        [Outcome::Success, Outcome::Invalid, Outcome::Refused, Outcome::Failed, Outcome::Cancelled, Outcome::Expired];

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Invalid => "invalid",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
            Outcome::Expired => "expired",
        }
    }

    /// The outcome of a request that ended with `error`.
    pub fn of(error: &Error) -> Outcome {
        use crate::error::Code;
        match error.code() {
            Code::QuotaExceeded | Code::Unavailable => Outcome::Refused,
            Code::DeadlineExceeded => Outcome::Expired,
            Code::Cancelled => Outcome::Cancelled,
            Code::Internal => Outcome::Failed,
            Code::InvalidArgument
            | Code::Unauthenticated
            | Code::PermissionDenied
            | Code::NotFound
            | Code::Conflict
            | Code::PayloadTooLarge
            | Code::Unsupported => Outcome::Invalid,
        }
    }
}
