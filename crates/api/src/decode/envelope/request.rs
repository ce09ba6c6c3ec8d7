//! What stands at the top of a request beside inputs and outputs: its id and its parameters, and the putting together of the
//! whole. The envelope feeds it.

use std::time::Duration;

use insula_core::{CheckedRequest, CheckedTensor, Code, Error, ModelSignature, Result};

use crate::decode::field::Field;
use crate::decode::output::OutputDrafts;
use crate::encode::Reply;
use crate::json::reader::{Event, Reader};
use crate::json::string::Text;

/// The longest id, in bytes.
const LONGEST_ID: usize = 256;

/// The request's own fields so far.
#[derive(Debug, Default)]
pub(super) struct RequestDraft {
    id: Option<Box<str>>,
    binary_data_output: bool,
    priority: u32,
    timeout: Option<Duration>,
}

impl RequestDraft {
    /// Takes the value of `field`. False when it is of the wrong kind.
    pub(super) fn set(&mut self, field: Field, event: Event, reader: &Reader, text: &[u8]) -> Result<bool> {
        let number = reader.number();
        match (field, event) {
            (Field::Id, Event::String) => self.id = Some(read_id(reader.string(), text)?),
            (Field::BinaryDataOutput, Event::Bool(binary)) => self.binary_data_output = binary,
            (Field::Priority, Event::Number) => {
                let priority = number.unsigned(text, u32::MAX.into()).and_then(|priority| u32::try_from(priority).ok());
                let Some(priority) = priority else { return Ok(false) };
                self.priority = priority;
            }
            (Field::Timeout, Event::Number) => {
                let Some(microseconds) = number.unsigned(text, u64::MAX) else { return Ok(false) };
                self.timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
            }
            (Field::SequenceId | Field::SequenceStart | Field::SequenceEnd, _) => {
                return refuse_sequence(field, event, reader, text);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts the request together.
    pub(super) fn finish(
        self,
        signature: &ModelSignature,
        inputs: Vec<CheckedTensor>,
        outputs: OutputDrafts,
    ) -> Result<CheckedRequest> {
        let (wanted, binary) = outputs.finish(signature, self.binary_data_output);
        let reply = Box::new(Reply::new(self.id, binary));
        let mut request = CheckedRequest::assemble(signature, inputs, wanted, reply)?;
        request.priority = self.priority;
        request.timeout = self.timeout;
        Ok(request)
    }
}

fn read_id(id: Text, text: &[u8]) -> Result<Box<str>> {
    match id.name(text) {
        Some(id) if id.len() <= LONGEST_ID => Ok(id.into()),
        Some(id) => Err(Error::invalid(format!("`id` has {} bytes, at most {LONGEST_ID} are allowed", id.len()))),
        None => Err(Error::invalid(format!("`id` is longer than {LONGEST_ID} bytes"))),
    }
}

/// Sequences are not offered; the values that mean "no sequence" are harmless.
fn refuse_sequence(field: Field, event: Event, reader: &Reader, text: &[u8]) -> Result<bool> {
    let harmless = match (field, event) {
        (Field::SequenceId, Event::Number) => reader.number().unsigned(text, u64::MAX) == Some(0),
        (Field::SequenceId, Event::String) => reader.string().raw(text).is_empty(),
        (Field::SequenceStart | Field::SequenceEnd, Event::Bool(set)) => !set,
        _ => return Ok(false),
    };
    if harmless {
        return Ok(true);
    }
    let message = format!("the parameter `{}` is not supported: every request stands alone", field.key());
    Err(Error::new(Code::Unsupported, message))
}
