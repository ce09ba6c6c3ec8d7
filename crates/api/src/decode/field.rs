//! The keys of an inference request that mean something, by the object they stand in, and which of them an object has had.
//! All other keys are passed over, as the protocol wants. It reads no values.

use insula_core::{Code, Error, Result};

/// A place in the request where values stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Start,
    Request,
    RequestParameters,
    Inputs,
    Input,
    InputParameters,
    Shape,
    Outputs,
    Output,
    OutputParameters,
}

/// A key that means something, or one of the many that do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Id,
    Parameters,
    Inputs,
    Outputs,
    Name,
    Shape,
    Datatype,
    Data,
    BinaryDataOutput,
    Priority,
    Timeout,
    SequenceId,
    SequenceStart,
    SequenceEnd,
    BinaryDataSize,
    BinaryData,
    Other,
}

impl Field {
    /// The field that `key` names in `place`.
    pub(super) fn find(place: Place, key: &[u8]) -> Field {
        match (place, key) {
            (Place::Request, b"id") => Field::Id,
            (Place::Request, b"inputs") => Field::Inputs,
            (Place::Request, b"outputs") => Field::Outputs,
            (Place::Request | Place::Input | Place::Output, b"parameters") => Field::Parameters,
            (Place::Input | Place::Output, b"name") => Field::Name,
            (Place::Input, b"shape") => Field::Shape,
            (Place::Input, b"datatype") => Field::Datatype,
            (Place::Input, b"data") => Field::Data,
            (Place::RequestParameters, b"binary_data_output") => Field::BinaryDataOutput,
            (Place::RequestParameters, b"priority") => Field::Priority,
            (Place::RequestParameters, b"timeout") => Field::Timeout,
            (Place::RequestParameters, b"sequence_id") => Field::SequenceId,
            (Place::RequestParameters, b"sequence_start") => Field::SequenceStart,
            (Place::RequestParameters, b"sequence_end") => Field::SequenceEnd,
            (Place::InputParameters, b"binary_data_size") => Field::BinaryDataSize,
            (Place::OutputParameters, b"binary_data") => Field::BinaryData,
            _ => Field::Other,
        }
    }

    /// The key.
    pub(super) fn key(self) -> &'static str {
        match self {
            Field::Id => "id",
            Field::Parameters => "parameters",
            Field::Inputs => "inputs",
            Field::Outputs => "outputs",
            Field::Name => "name",
            Field::Shape => "shape",
            Field::Datatype => "datatype",
            Field::Data => "data",
            Field::BinaryDataOutput => "binary_data_output",
            Field::Priority => "priority",
            Field::Timeout => "timeout",
            Field::SequenceId => "sequence_id",
            Field::SequenceStart => "sequence_start",
            Field::SequenceEnd => "sequence_end",
            Field::BinaryDataSize => "binary_data_size",
            Field::BinaryData => "binary_data",
            Field::Other => "a key without meaning",
        }
    }

    /// What its value must be.
    pub(super) fn wants(self) -> &'static str {
        match self {
            Field::Id | Field::Name | Field::Datatype => "a string",
            Field::Parameters => "an object",
            Field::Inputs | Field::Outputs | Field::Data => "an array",
            Field::Shape => "an array of whole numbers",
            Field::BinaryDataOutput | Field::BinaryData | Field::SequenceStart | Field::SequenceEnd => "true or false",
            Field::Priority | Field::Timeout | Field::BinaryDataSize => "a whole number that is not negative",
            Field::SequenceId => "a whole number or a string",
            Field::Other => "any value",
        }
    }
}

/// Refuses parameters that ask for what insula does not offer. `owner` is whose parameters they are.
pub(super) fn refuse_unsupported(place: Place, key: &[u8], owner: impl Fn() -> String) -> Result<()> {
    let (name, instead) = match (place, key) {
        (Place::InputParameters, b"shared_memory_region" | b"shared_memory_byte_size" | b"shared_memory_offset") => {
            (key, "send the tensor in the request")
        }
        (Place::OutputParameters, b"shared_memory_region" | b"shared_memory_byte_size" | b"shared_memory_offset") => {
            (key, "the tensor comes in the answer")
        }
        (Place::OutputParameters, b"classification") => (key, "the tensor comes as it is"),
        _ => return Ok(()),
    };
    let name = String::from_utf8_lossy(name);
    Err(Error::new(Code::Unsupported, format!("the parameter `{name}` of {} is not supported: {instead}", owner())))
}

/// The fields that one object has had.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen(u32);

impl Seen {
    /// Notes `field`; false if it was there before.
    pub(super) fn first(&mut self, field: Field) -> bool {
        let bit = 1 << field as u32;
        let fresh = self.0 & bit == 0 || field == Field::Other;
        self.0 |= bit;
        fresh
    }
}
