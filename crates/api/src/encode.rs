//! Writing inference answers: a JSON description with each output's data in it, or behind it as binary data, whichever the
//! caller asked for. The decoder makes a [`Reply`] for each request; runtime steps it into the socket's buffers. It reads
//! outputs only through the source handed to it.

mod element;
mod elements;
mod scan;

use insula_core::{Code, DType, Encode, EncodedHead, Error, OutputTensor, Result, TensorSource};
use smallvec::SmallVec;

use crate::json::string::plain_run;
use element::escape;
use elements::Elements;

/// Outputs that cannot be longer than this in JSON are written at once, into the description; others as the socket drains.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// What an answer is made of, in order.
#[derive(Debug)]
enum Segment {
    /// The prepared text up to this position.
    Text(usize),
    /// The elements of output number `output`.
    Elements { output: usize, elements: Elements },
    /// Spaces, until the description has its announced length.
    Padding(usize),
    /// The bytes of an output.
    Raw { output: usize, written: usize },
}

/// The writer of one answer.
#[derive(Debug)]
pub(crate) struct Reply {
    id: Option<Box<str>>,
    /// For each output wanted, whether it is answered as binary data.
    binary: SmallVec<[bool; 4]>,
    /// The prepared parts of the description.
    text: Vec<u8>,
    text_written: usize,
    segments: SmallVec<[Segment; 4]>,
    current: usize,
    /// Bytes of the description written so far.
    described: usize,
}

impl Reply {
    /// An answer that repeats `id` and gives the outputs wanted, in order, as `binary` data or JSON.
    pub(crate) fn new(id: Option<Box<str>>, binary: SmallVec<[bool; 4]>) -> Reply {
        Reply { id, binary, text: Vec::new(), text_written: 0, segments: SmallVec::new(), current: 0, described: 0 }
    }

    fn begin(&mut self, from: &dyn TensorSource) {
        self.text.extend_from_slice(b"{");
        if let Some(id) = &self.id {
            self.text.extend_from_slice(b"\"id\":");
            append_string(&mut self.text, id.as_bytes());
            self.text.extend_from_slice(b",");
        }
        self.text.extend_from_slice(b"\"model_name\":");
        append_string(&mut self.text, from.model_name().as_bytes());
        self.text.extend_from_slice(b",\"model_version\":\"");
        self.text.extend_from_slice(itoa::Buffer::new().format(from.model_version()).as_bytes());
        self.text.extend_from_slice(b"\",\"outputs\":[");
    }

    /// Describes output number `index`; returns the most bytes that are yet to be written within it.
    fn describe(&mut self, index: usize, output: &OutputTensor<'_>) -> Result<usize> {
        self.text.extend_from_slice(if index == 0 { b"{\"name\":" } else { b",{\"name\":" });
        append_string(&mut self.text, output.name.as_bytes());
        self.text.extend_from_slice(b",\"datatype\":\"");
        self.text.extend_from_slice(output.dtype.name().as_bytes());
        self.text.extend_from_slice(b"\",\"shape\":[");
        for (position, size) in output.shape.dims().iter().enumerate() {
            if position > 0 {
                self.text.push(b',');
            }
            self.text.extend_from_slice(itoa::Buffer::new().format(*size).as_bytes());
        }
        if self.binary.get(index) == Some(&true) {
            self.text.extend_from_slice(b"],\"parameters\":{\"binary_data_size\":");
            self.text.extend_from_slice(itoa::Buffer::new().format(output.bytes.len()).as_bytes());
            self.text.extend_from_slice(b"}}");
            return Ok(0);
        }
        self.text.extend_from_slice(b"],\"data\":[");
        let longest = self.data(index, output)?;
        self.text.extend_from_slice(b"]}");
        Ok(longest)
    }

    fn data(&mut self, index: usize, output: &OutputTensor<'_>) -> Result<usize> {
        let longest = scan::longest_text(output)?;
        let mut elements = Elements::default();
        let start = self.text.len();
        if start.saturating_add(longest) > WRITTEN_AT_ONCE {
            self.segments.push(Segment::Text(start));
            self.segments.push(Segment::Elements { output: index, elements });
            return Ok(longest);
        }
        self.text.resize(start + longest, 0);
        let written = elements.write(output, &mut self.text[start..])?;
        if !elements.done(output) {
            return Err(Error::internal(
                "an output could not be written",
                format!("{} is longer than {longest}", output.name),
            ));
        }
        self.text.truncate(start + written);
        Ok(0)
    }
}

impl Encode for Reply {
    fn head(&mut self, from: &dyn TensorSource) -> Result<EncodedHead> {
        if from.outputs() != self.binary.len() {
            let counts = format!("{} wanted, {} given", self.binary.len(), from.outputs());
            return Err(Error::internal("the outputs are not those that were asked for", counts));
        }
        self.begin(from);
        let (mut later, mut raw) = (0usize, 0usize);
        let mut tail = SmallVec::<[Segment; 4]>::new();
        for index in 0..self.binary.len() {
            let output = output(from, index)?;
            later = later.saturating_add(self.describe(index, &output)?);
            if self.binary[index] {
                raw += output.bytes.len();
                tail.push(Segment::Raw { output: index, written: 0 });
            }
        }
        self.text.extend_from_slice(b"]}");
        self.segments.push(Segment::Text(self.text.len()));
        let description = self.text.len().saturating_add(later);
        if tail.is_empty() {
            let length = (later == 0).then_some(description);
            return Ok(EncodedHead { media_type: "application/json", description_length: None, length });
        }
        if later > 0 {
            // its length must be said before it is known, so the longest it can be is said and kept
            self.segments.push(Segment::Padding(description));
        }
        self.segments.append(&mut tail);
        Ok(EncodedHead {
            media_type: "application/octet-stream",
            description_length: Some(description),
            length: Some(description + raw),
        })
    }

    fn step(&mut self, from: &dyn TensorSource, out: &mut [u8]) -> Result<usize> {
        let mut at = 0;
        while at < out.len()
            && let Some(segment) = self.segments.get_mut(self.current)
        {
            let room = &mut out[at..];
            let (count, done) = match segment {
                Segment::Text(end) => {
                    let count = copy(self.text.get(self.text_written..*end).unwrap_or_default(), room);
                    self.text_written += count;
                    self.described += count;
                    (count, self.text_written >= *end)
                }
                Segment::Elements { output: index, elements } => {
                    let output = output(from, *index)?;
                    let count = elements.write(&output, room)?;
                    self.described += count;
                    (count, elements.done(&output))
                }
                Segment::Padding(length) => {
                    let count = room.len().min(length.saturating_sub(self.described));
                    room[..count].fill(b' ');
                    self.described += count;
                    (count, self.described >= *length)
                }
                Segment::Raw { output: index, written } => {
                    let bytes = output(from, *index)?.bytes;
                    let count = copy(bytes.get(*written..).unwrap_or_default(), room);
                    *written += count;
                    (count, *written >= bytes.len())
                }
            };
            at += count;
            self.current += usize::from(done);
        }
        Ok(at)
    }
}

fn output(from: &dyn TensorSource, index: usize) -> Result<OutputTensor<'_>> {
    from.output(index).ok_or_else(|| Error::internal("an output is missing", format!("number {index}")))
}

/// Copies as much of `from` as fits and returns how much.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

/// Appends `characters`, which must be UTF-8, as a JSON string.
fn append_string(text: &mut Vec<u8>, mut characters: &[u8]) {
    text.push(b'"');
    loop {
        let (plain, rest) = characters.split_at(plain_run(characters));
        text.extend_from_slice(plain);
        let Some((&special, rest)) = rest.split_first() else { break };
        text.extend_from_slice(escape(special).as_slice());
        characters = rest;
    }
    text.push(b'"');
}

/// The error for an output that JSON cannot hold.
fn not_json(output: &OutputTensor<'_>, index: usize, what: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        format!(
            "element {index} of output `{}` is {what}, which JSON cannot hold: ask for the output with the parameter \
             `binary_data` set to true",
            output.name
        ),
    )
}

/// The error for BYTES elements that do not add up: the model's fault, not the caller's.
fn torn(output: &OutputTensor<'_>, found: &str) -> Error {
    debug_assert_eq!(output.dtype, DType::Bytes);
    Error::internal(format!("output `{}` could not be written", output.name), format!("a BYTES element {found}"))
}
