//! The one reading of an inference request, whether its tensors come as JSON or in a binary tail: a state machine over JSON
//! events that fills drafts, places tensors and hands all to the wall. It steps within a budget of body bytes and keeps
//! nothing of the text but positions.

mod request;
mod tail;

use std::sync::Arc;

use insula_core::{CheckedRequest, CheckedTensor, Error, ModelSignature, Result, TensorClaim, TensorSink};

use super::field::{Field, Place, Seen, refuse_unsupported};
use super::fill::Fill;
use super::input::{InputDraft, Source};
use super::output::OutputDrafts;
use crate::format::{INFERENCE_HEADER_CONTENT_LENGTH, description_too_long};
use crate::json::reader::{Event, Reader};
use crate::json::string::Text;
use request::RequestDraft;
use smallvec::SmallVec;
use tail::Tail;

/// What an event leaves to be done with the sink.
enum Task {
    Nothing,
    /// `data` begins and its tensor is known.
    ReadData(TensorClaim),
    /// An entry of `inputs` is over.
    EndInput,
    /// The text is over.
    EndText,
}

/// Who goes on when a fill is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The reader, behind the array that was read.
    Reader,
    /// The reader, from where it is: the array was read late.
    Entry,
}

/// A request being read.
pub(super) struct Envelope {
    signature: Arc<ModelSignature>,
    /// Bytes of JSON text at the start of the body; `None`: all of it.
    description_length: Option<usize>,
    reader: Reader,
    place: Place,
    field: Field,
    /// The fields that the open objects have had: request, entry, parameters.
    seen: [Seen; 3],
    /// While a value without meaning is passed over: the depth at which it is over.
    skip: Option<usize>,
    request: RequestDraft,
    /// The inputs named so far.
    named: SmallVec<[usize; 4]>,
    inputs: Vec<CheckedTensor>,
    input: InputDraft,
    outputs: OutputDrafts,
    fill: Option<(Fill, After)>,
    tail: Tail,
    /// Whether the text has been read to its end.
    text_is_over: bool,
}

impl Envelope {
    /// Bytes of JSON text at the start of the body; `None`: all of it.
    pub(super) fn description_length(&self) -> Option<usize> {
        self.description_length
    }

    /// Before the first byte of a request to the model with `signature`.
    pub(super) fn new(signature: Arc<ModelSignature>, description_length: Option<usize>) -> Envelope {
        Envelope {
            named: SmallVec::new(),
            inputs: Vec::with_capacity(signature.inputs.len()),
            signature,
            description_length,
            reader: Reader::new(),
            place: Place::Start,
            field: Field::Other,
            seen: [Seen::default(); 3],
            skip: None,
            request: RequestDraft::default(),
            input: InputDraft::default(),
            outputs: OutputDrafts::default(),
            fill: None,
            tail: Tail::default(),
            text_is_over: false,
        }
    }

    /// Reads about `budget` bytes on.
    pub(super) fn step(&mut self, sink: &mut dyn TensorSink, budget: usize) -> Result<Option<CheckedRequest>> {
        let text_length = self.text_length(sink)?;
        let mut left = budget;
        loop {
            let used = if let Some((fill, after)) = &mut self.fill {
                let (start, after) = (fill.position(), *after);
                let done = fill.step(sink, text_length, start.saturating_add(left))?;
                let used = fill.position() - start;
                if done {
                    self.end_fill(sink, after)?;
                }
                used
            } else if self.text_is_over {
                match self.tail.next(sink, text_length)? {
                    Some(tensor) => {
                        let used = tensor.bytes();
                        self.inputs.push(tensor);
                        used
                    }
                    None => return self.finish().map(Some),
                }
            } else {
                let start = self.reader.position();
                let text = sink.body().get(..text_length).unwrap_or_default();
                let event = self.reader.next(text, start.saturating_add(left))?;
                let task = match event {
                    Some(event) => self.take(event, text)?,
                    None => Task::Nothing,
                };
                let used = self.reader.position() - start;
                match task {
                    Task::Nothing => {}
                    Task::ReadData(claim) => {
                        let fill = Fill::new(claim, sink, self.reader.position(), text_length)?;
                        self.fill = Some((fill, After::Reader));
                    }
                    Task::EndInput => self.end_input(sink)?,
                    Task::EndText => {
                        self.tail.check(sink.body().len() - text_length)?;
                        self.text_is_over = true;
                    }
                }
                used
            };
            left = left.saturating_sub(used);
            if left == 0 {
                return Ok(None);
            }
        }
    }

    fn text_length(&self, sink: &dyn TensorSink) -> Result<usize> {
        let body_length = sink.body().len();
        match self.description_length {
            None => Ok(body_length),
            Some(length) if length <= body_length => Ok(length),
            Some(length) => Err(description_too_long(length, body_length)),
        }
    }

    fn take(&mut self, event: Event, text: &[u8]) -> Result<Task> {
        if let Some(depth) = self.skip {
            if self.reader.depth() == depth {
                self.skip = None;
                if let (Field::Data, Some(range)) = (self.field, &mut self.input.data) {
                    range.end = self.reader.position();
                }
            }
            return Ok(Task::Nothing);
        }
        match event {
            Event::Key => self.key(text).map(|()| Task::Nothing),
            Event::End => Ok(Task::EndText),
            Event::Trailing => Err(self.trailing(text.len())),
            _ => self.value(event, text),
        }
    }

    fn key(&mut self, text: &[u8]) -> Result<()> {
        let key = self.reader.string();
        let decoded;
        let name = if key.escaped {
            decoded = key.name(text).unwrap_or_default();
            decoded.as_bytes()
        } else {
            key.raw(text)
        };
        self.field = Field::find(self.place, name);
        if self.field == Field::Other {
            return refuse_unsupported(self.place, name, || self.owner());
        }
        if self.seen[self.level()].first(self.field) {
            return Ok(());
        }
        Err(Error::invalid(format!("`{}` of {} is given twice", self.field.key(), self.owner())))
    }

    fn value(&mut self, event: Event, text: &[u8]) -> Result<Task> {
        match (self.place, event) {
            (Place::Start, Event::BeginObject) => self.enter(Place::Request),
            (Place::Request, Event::EndObject) => {}
            (Place::RequestParameters | Place::Inputs | Place::Outputs, Event::EndObject | Event::EndArray) => {
                self.place = Place::Request;
            }
            (Place::Inputs, Event::BeginObject) => {
                self.input = InputDraft::new(self.named.len());
                self.enter(Place::Input);
            }
            (Place::Input, Event::EndObject) => {
                self.place = Place::Inputs;
                return Ok(Task::EndInput);
            }
            (Place::InputParameters | Place::Shape, Event::EndObject | Event::EndArray) => self.place = Place::Input,
            (Place::Shape, Event::Number) => self.input.add_dimension(self.reader.number(), text, &self.signature)?,
            (Place::Outputs, Event::BeginObject) => {
                self.outputs.begin();
                self.enter(Place::Output);
            }
            (Place::Output, Event::EndObject) => {
                self.outputs.end(&self.signature)?;
                self.place = Place::Outputs;
            }
            (Place::OutputParameters, Event::EndObject) => self.place = Place::Output,
            (Place::Request | Place::RequestParameters, _) => self.request_value(event, text)?,
            (Place::Input | Place::InputParameters, _) => return self.input_value(event, text),
            (Place::Output | Place::OutputParameters, _) => self.output_value(event, text)?,
            (Place::Start | Place::Inputs | Place::Outputs | Place::Shape, _) => return Err(self.wrong_kind(event)),
        }
        Ok(Task::Nothing)
    }

    fn request_value(&mut self, event: Event, text: &[u8]) -> Result<()> {
        match (self.field, event) {
            (Field::Other, _) => self.pass_over(event),
            (Field::Parameters, Event::BeginObject) => self.enter(Place::RequestParameters),
            (Field::Inputs, Event::BeginArray) => self.place = Place::Inputs,
            (Field::Outputs, Event::BeginArray) => self.place = Place::Outputs,
            // some clients write optional fields that they do not use as null
            (Field::Id | Field::Parameters | Field::Outputs, Event::Null) => {}
            (field, _) => {
                if !self.request.set(field, event, &self.reader, text)? {
                    return Err(self.wrong_kind(event));
                }
            }
        }
        Ok(())
    }

    fn input_value(&mut self, event: Event, text: &[u8]) -> Result<Task> {
        match (self.field, event) {
            (Field::Other, _) => self.pass_over(event),
            (Field::Parameters, Event::BeginObject) => self.enter(Place::InputParameters),
            (Field::Parameters, Event::Null) => {}
            (Field::Name, Event::String) => {
                let input = self.signature.input(&name_of(self.reader.string(), text))?;
                if self.named.contains(&input) {
                    let name = &self.signature.inputs[input].name;
                    return Err(Error::invalid(format!("input `{name}` is given twice, it must be given once")));
                }
                self.named.push(input);
                self.input.set_input(input);
            }
            (Field::Datatype, Event::String) => {
                self.input.set_datatype(name_of(self.reader.string(), text).as_bytes(), &self.signature)?;
            }
            (Field::Shape, Event::BeginArray) => {
                self.input.begin_shape();
                self.place = Place::Shape;
            }
            (Field::Data, Event::BeginArray) => return self.begin_data(event),
            (Field::BinaryDataSize, Event::Number) => {
                let size = self.reader.number().unsigned(text, u64::MAX).and_then(|size| usize::try_from(size).ok());
                self.input.binary_data_size = Some(size.ok_or_else(|| self.wrong_kind(event))?);
            }
            _ => return Err(self.wrong_kind(event)),
        }
        Ok(Task::Nothing)
    }

    fn output_value(&mut self, event: Event, text: &[u8]) -> Result<()> {
        match (self.field, event) {
            (Field::Other, _) => self.pass_over(event),
            (Field::Parameters, Event::BeginObject) => self.enter(Place::OutputParameters),
            (Field::Parameters, Event::Null) => {}
            (Field::Name, Event::String) => {
                let output = self.signature.output(&name_of(self.reader.string(), text))?;
                self.outputs.set_output(output, &self.signature)?;
            }
            (Field::BinaryData, Event::Bool(binary)) => self.outputs.binary_data = Some(binary),
            _ => return Err(self.wrong_kind(event)),
        }
        Ok(())
    }

    fn begin_data(&mut self, event: Event) -> Result<Task> {
        if self.input.binary_data_size.is_none()
            && let Some(claim) = self.input.claim(&self.signature)?
        {
            return Ok(Task::ReadData(claim));
        }
        let start = self.reader.position();
        self.input.data = Some(start..start);
        self.pass_over(event);
        Ok(Task::Nothing)
    }

    /// Passes over the value that begins with `event`.
    fn pass_over(&mut self, event: Event) {
        if matches!(event, Event::BeginObject | Event::BeginArray) {
            self.skip = Some(self.reader.depth() - 1);
        }
    }

    fn end_fill(&mut self, sink: &mut dyn TensorSink, after: After) -> Result<()> {
        let Some((fill, _)) = self.fill.take() else { return Ok(()) };
        let position = fill.position();
        let tensor = fill.finish(sink)?;
        match after {
            After::Reader => {
                self.reader.array_was_read(position);
                self.input.tensor = Some(tensor);
            }
            After::Entry => self.inputs.push(tensor),
        }
        Ok(())
    }

    fn end_input(&mut self, sink: &mut dyn TensorSink) -> Result<()> {
        let input = std::mem::take(&mut self.input);
        match input.source(&self.signature, self.description_length.is_some())? {
            Source::Read(tensor) => self.inputs.push(tensor),
            Source::Text(claim, range) => {
                let fill = Fill::new(claim, sink, range.start, range.end)?;
                self.fill = Some((fill, After::Entry));
            }
            Source::Binary(claim, size) => self.tail.add(claim, size)?,
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<CheckedRequest> {
        let request = std::mem::take(&mut self.request);
        request.finish(&self.signature, std::mem::take(&mut self.inputs), std::mem::take(&mut self.outputs))
    }

    fn enter(&mut self, place: Place) {
        self.place = place;
        self.seen[self.level()] = Seen::default();
    }

    /// Which set of seen fields the innermost object uses.
    fn level(&self) -> usize {
        match self.place {
            Place::InputParameters | Place::OutputParameters => 2,
            Place::RequestParameters | Place::Input | Place::Output | Place::Shape => 1,
            Place::Start | Place::Request | Place::Inputs | Place::Outputs => 0,
        }
    }

    /// Whose fields are being read, for messages.
    fn owner(&self) -> String {
        match self.place {
            Place::Input | Place::InputParameters | Place::Shape => self.input.label(&self.signature),
            Place::Output | Place::OutputParameters => self.outputs.label(&self.signature),
            _ => "the request".into(),
        }
    }

    #[cold]
    fn wrong_kind(&self, event: Event) -> Error {
        let found = event.kind();
        Error::invalid(match self.place {
            Place::Start => format!("the body must be a JSON object, found {found}"),
            Place::Inputs | Place::Outputs => {
                format!("`{}` of the request must be an array of objects, found {found}", self.field.key())
            }
            _ => format!("`{}` of {} must be {}, found {found}", self.field.key(), self.owner(), self.field.wants()),
        })
    }

    #[cold]
    fn trailing(&self, text_length: usize) -> Error {
        let end = self.reader.position();
        let count = text_length - end;
        Error::invalid(match self.description_length {
            None => format!(
                "{count} bytes follow the JSON text, which ends at byte {end}: if they are binary tensors, the header \
                 `{INFERENCE_HEADER_CONTENT_LENGTH}` is missing"
            ),
            Some(length) => format!(
                "the header `{INFERENCE_HEADER_CONTENT_LENGTH}` is {length}, but the JSON text ends at byte {end}"
            ),
        })
    }
}

/// The characters of a name; of one that is longer than any name, its start.
fn name_of<'a>(name: Text, text: &'a [u8]) -> std::borrow::Cow<'a, str> {
    name.name(text).unwrap_or_else(|| {
        let start = &name.raw(text)[..crate::json::string::LONGEST_NAME];
        String::from_utf8_lossy(start).into_owned().into()
    })
}
