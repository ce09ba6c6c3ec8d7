//! The hot loop of JSON requests: the `data` of one tensor, from its text straight into its reserved memory, in steps. It
//! keeps its own place in the text, because it may run behind the reader when `data` came before `shape`.

use insula_core::{CheckedTensor, DType, Error, Result, TensorClaim, TensorSink, TensorSlot};

use super::element::{store, takes};
use super::nesting::Nesting;
use crate::json::number::Number;
use crate::json::string::{Piece, next_piece};
use crate::json::{excerpt, is_whitespace, syntax};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    FirstOrEnd,
    Element,
    Separator,
}

/// A tensor being read from JSON text.
#[derive(Debug)]
pub(super) struct Fill {
    claim: TensorClaim,
    /// `None` when the shape has more elements than the text can hold: they are only counted, for the message.
    slot: Option<TensorSlot>,
    position: usize,
    nesting: Nesting,
    expect: Expect,
    elements: usize,
    written: usize,
    /// Where the length of the open BYTES element is to be written.
    string: Option<usize>,
}

impl Fill {
    /// Reserves memory for the tensor whose elements start at `position`, behind the `[`, and end before `end`.
    pub(super) fn new(claim: TensorClaim, sink: &mut dyn TensorSink, position: usize, end: usize) -> Result<Fill> {
        let room = end.saturating_sub(position);
        let elements = claim.shape().elements();
        // each element has at least one character and a separator behind it
        let slot = if elements > room / 2 {
            None
        } else {
            // a string of n bytes takes n and two quotes in the text, and n and four bytes of length in memory
            let bytes = claim.bytes().unwrap_or(room.saturating_add(elements));
            Some(sink.reserve(bytes)?)
        };
        let (nesting, expect) = (Nesting::new(), Expect::FirstOrEnd);
        Ok(Fill { claim, slot, position, nesting, expect, elements: 0, written: 0, string: None })
    }

    /// Where it stands in the text.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Reads on to about `stop`. True when the closing `]` has been read.
    pub(super) fn step(&mut self, sink: &mut dyn TensorSink, text_length: usize, stop: usize) -> Result<bool> {
        let (text, out) = match self.slot {
            Some(slot) => sink.body_and_slot(slot),
            None => (sink.body(), Default::default()),
        };
        self.read(text.get(..text_length).unwrap_or(text), out, stop)
    }

    /// The tensor, after the last step: counted, shortened to its size and passed through the wall.
    pub(super) fn finish(self, sink: &mut dyn TensorSink) -> Result<CheckedTensor> {
        let (Some(slot), true) = (self.slot, self.elements == self.claim.shape().elements()) else {
            return Err(Error::invalid(format!(
                "input `{}` has {} elements of data, shape {} has {}",
                self.claim.name(),
                self.elements,
                self.claim.shape(),
                self.claim.shape().elements()
            )));
        };
        if self.claim.dtype() == DType::Bytes {
            sink.truncate(slot, self.written)?;
        }
        self.claim.verify(sink.slot(slot), slot)
    }

    fn read(&mut self, text: &[u8], out: &mut [u8], stop: usize) -> Result<bool> {
        if let Some(prefix) = self.string
            && !self.string(text, out, stop, prefix)?
        {
            return Ok(false);
        }
        loop {
            let Some(&byte) = text.get(self.position) else {
                return Err(syntax(text, self.position, "the rest of an array"));
            };
            match (byte, self.expect) {
                (b',', Expect::Separator) => {
                    self.expect = Expect::Element;
                    self.position += 1;
                }
                (b']', Expect::Separator | Expect::FirstOrEnd) => {
                    self.expect = Expect::Separator;
                    self.position += 1;
                    if self.nesting.close(self.claim.shape()).map_err(|fault| self.ragged(&fault))? {
                        return Ok(true);
                    }
                }
                _ if is_whitespace(byte) => self.position += 1,
                (_, Expect::Separator) => return Err(syntax(text, self.position, "`,` or `]`")),
                (b'[', _) => {
                    self.nesting.open(self.claim.shape()).map_err(|fault| self.ragged(&fault))?;
                    self.expect = Expect::FirstOrEnd;
                    self.position += 1;
                }
                _ => {
                    if !self.element(text, out, stop, byte)? {
                        return Ok(false);
                    }
                    // nearly always the separator follows at once
                    if text.get(self.position) == Some(&b',') {
                        self.expect = Expect::Element;
                        self.position += 1;
                    }
                }
            }
            if self.position >= stop {
                return Ok(false);
            }
        }
    }

    /// Reads the element that starts with `byte`. False when `stop` was reached within a string.
    fn element(&mut self, text: &[u8], out: &mut [u8], stop: usize, byte: u8) -> Result<bool> {
        self.nesting.element(self.claim.shape()).map_err(|fault| self.ragged(&fault))?;
        self.expect = Expect::Separator;
        match (self.claim.dtype(), byte) {
            (DType::Bytes, b'"') => {
                let prefix = self.written;
                self.put(out, &[0; 4]);
                self.position += 1;
                return self.string(text, out, stop, prefix);
            }
            (DType::Bool, b't' | b'f') => self.boolean(text, out)?,
            (DType::Bool | DType::Bytes, _) => return Err(self.wrong_kind(text, byte)),
            (dtype, b'-' | b'0'..=b'9') => {
                let number = Number::scan(text, self.position)?;
                let size = dtype.size().unwrap_or(0);
                // elements beyond the shape are counted, and checked all the same
                let mut beyond = [0; 8];
                let place = out.get_mut(self.written..self.written + size);
                self.written += usize::from(place.is_some()) * size;
                let place = place.unwrap_or(&mut beyond[..size]);
                if store(dtype, &number, text, place).is_none() {
                    return Err(self.misfit(&excerpt(number.text(text))));
                }
                self.position = number.end;
            }
            _ => return Err(self.wrong_kind(text, byte)),
        }
        self.elements += 1;
        Ok(true)
    }

    fn boolean(&mut self, text: &[u8], out: &mut [u8]) -> Result<()> {
        let rest = &text[self.position..];
        let (value, length) = match (rest.starts_with(b"true"), rest.starts_with(b"false")) {
            (true, _) => (1, 4),
            (_, true) => (0, 5),
            _ => return Err(syntax(text, self.position, "a value")),
        };
        self.put(out, &[value]);
        self.position += length;
        Ok(())
    }

    /// Reads on in a BYTES element. False when `stop` was reached before its end.
    fn string(&mut self, text: &[u8], out: &mut [u8], stop: usize, prefix: usize) -> Result<bool> {
        loop {
            match next_piece(text, self.position, stop)? {
                Piece::Plain(end) => {
                    self.put(out, &text[self.position..end]);
                    self.position = end;
                }
                Piece::Escaped(character, next) => {
                    self.put(out, character.encode_utf8(&mut [0; 4]).as_bytes());
                    self.position = next;
                }
                Piece::End(next) => {
                    self.position = next;
                    self.string = None;
                    self.elements += 1;
                    return self.close_string(out, prefix).map(|()| true);
                }
            }
            if self.position >= stop {
                self.string = Some(prefix);
                return Ok(false);
            }
        }
    }

    fn close_string(&mut self, out: &mut [u8], prefix: usize) -> Result<()> {
        let start = prefix + 4;
        let Ok(length) = u32::try_from(self.written.saturating_sub(start)) else {
            let (name, index) = (self.claim.name(), self.elements - 1);
            return Err(Error::invalid(format!("element {index} of input `{name}` is longer than {} bytes", u32::MAX)));
        };
        if let Some(place) = out.get_mut(prefix..start) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    /// Writes bytes of a BOOL or BYTES element; what does not fit belongs to elements beyond the shape.
    fn put(&mut self, out: &mut [u8], bytes: &[u8]) {
        let end = self.written + bytes.len();
        if let Some(place) = out.get_mut(self.written..end) {
            place.copy_from_slice(bytes);
        }
        self.written = end;
    }

    #[cold]
    fn ragged(&self, fault: &str) -> Error {
        Error::invalid(format!("`data` of input `{}` {fault}", self.claim.name()))
    }

    #[cold]
    fn misfit(&self, found: &str) -> Error {
        let (dtype, name) = (self.claim.dtype(), self.claim.name());
        Error::invalid(format!(
            "element {} of input `{name}` is {found}, {dtype} takes {}",
            self.elements,
            takes(dtype)
        ))
    }

    #[cold]
    fn wrong_kind(&self, text: &[u8], byte: u8) -> Error {
        match byte {
            b'"' => self.misfit("a string"),
            b'{' => self.misfit("an object"),
            b't' | b'f' => self.misfit("a boolean"),
            b'n' => self.misfit("null"),
            b'-' | b'0'..=b'9' => self.misfit("a number"),
            _ => syntax(text, self.position, "a value"),
        }
    }
}
