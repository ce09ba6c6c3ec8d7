//! A pull reader over JSON text: one event a call, its whole state a few words, so that it can stop anywhere and go on
//! later. It checks the grammar of everything it passes, wanted or not, and never nests deeper than its limit.

use insula_core::{Error, Result};

use super::number::Number;
use super::string::{Piece, Text, next_piece};
use super::{is_whitespace, syntax};

/// The deepest nesting of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 100;

/// What the reader met. It is small on purpose: what strings and numbers are stays with the reader, because events are
/// handed through several calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A key of the innermost object, which [`Reader::string`] gives; its value follows.
    Key,
    /// A string value, which [`Reader::string`] gives.
    String,
    /// A number, which [`Reader::number`] gives.
    Number,
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// `{`
    BeginObject,
    /// `}`
    EndObject,
    /// `[`
    BeginArray,
    /// `]`
    EndArray,
    /// The text is over.
    End,
    /// Something follows the outermost value; the reader's position is where it starts.
    Trailing,
}

impl Event {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Event::Key => "a key",
            Event::String => "a string",
            Event::Number => "a number",
            Event::Bool(_) => "a boolean",
            Event::Null => "null",
            Event::BeginObject | Event::EndObject => "an object",
            Event::BeginArray | Event::EndArray => "an array",
            Event::End | Event::Trailing => "nothing",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    FirstElement,
    FirstKey,
    Key,
    Colon,
    Separator,
    Nothing,
}

/// The reader's state; the text is handed to each call and must be the same every time.
#[derive(Debug)]
pub(crate) struct Reader {
    position: usize,
    depth: usize,
    /// One bit for each open container, innermost lowest: set for objects.
    objects: u128,
    expect: Expect,
    /// The latest string, or the open one.
    string: Text,
    string_is_open: bool,
    number: Number,
}

impl Reader {
    /// At the start of a text.
    pub(crate) fn new() -> Reader {
        Reader {
            position: 0,
            depth: 0,
            objects: 0,
            expect: Expect::Value,
            string: Text::default(),
            string_is_open: false,
            number: Number::default(),
        }
    }

    /// Where it stands: after the latest event.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// How many containers are open.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The string of the latest event.
    pub(crate) fn string(&self) -> Text {
        self.string
    }

    /// The number of the latest event.
    pub(crate) fn number(&self) -> &Number {
        &self.number
    }

    /// Goes on after an array whose elements somebody else has read up to and with its `]`, which ends at `position`.
    pub(crate) fn array_was_read(&mut self, position: usize) {
        self.position = position;
        self.close();
    }

    /// The next event, or `None` when `stop` was reached within it: call again. Each call reads at least one byte.
    pub(crate) fn next(&mut self, text: &[u8], stop: usize) -> Result<Option<Event>> {
        if self.string_is_open {
            return self.read_string(text, stop);
        }
        loop {
            let Some(byte) = self.peek(text, stop) else {
                if self.position < text.len() {
                    return Ok(None);
                }
                return match self.expect {
                    Expect::Nothing => Ok(Some(Event::End)),
                    _ => Err(syntax(text, self.position, self.expected())),
                };
            };
            match (self.expect, byte) {
                (Expect::Separator, b',') => {
                    self.position += 1;
                    self.expect = if self.in_object() { Expect::Key } else { Expect::Value };
                }
                (Expect::Colon, b':') => {
                    self.position += 1;
                    self.expect = Expect::Value;
                }
                (Expect::Separator | Expect::FirstKey, b'}') if self.in_object() => {
                    return Ok(self.end(Event::EndObject));
                }
                (Expect::Separator | Expect::FirstElement, b']') if !self.in_object() => {
                    return Ok(self.end(Event::EndArray));
                }
                (Expect::FirstKey | Expect::Key, b'"') => return self.open_string(text, stop),
                (Expect::Value | Expect::FirstElement, _) => return self.value(text, stop, byte),
                (Expect::Nothing, _) => return Ok(Some(Event::Trailing)),
                _ => return Err(syntax(text, self.position, self.expected())),
            }
        }
    }

    /// The next byte that is not whitespace; `None` at the end of the text or when `stop` is reached.
    fn peek(&mut self, text: &[u8], stop: usize) -> Option<u8> {
        while let Some(&byte) = text.get(self.position) {
            if !is_whitespace(byte) {
                return Some(byte);
            }
            self.position += 1;
            if self.position >= stop {
                return None;
            }
        }
        None
    }

    fn value(&mut self, text: &[u8], stop: usize, byte: u8) -> Result<Option<Event>> {
        let event = match byte {
            b'"' => return self.open_string(text, stop),
            b'{' => return self.open(Event::BeginObject, Expect::FirstKey),
            b'[' => return self.open(Event::BeginArray, Expect::FirstElement),
            b't' => self.literal(text, b"true", Event::Bool(true))?,
            b'f' => self.literal(text, b"false", Event::Bool(false))?,
            b'n' => self.literal(text, b"null", Event::Null)?,
            _ => {
                self.number = Number::scan(text, self.position)?;
                self.position = self.number.end;
                Event::Number
            }
        };
        self.after_value();
        Ok(Some(event))
    }

    fn literal(&mut self, text: &[u8], word: &[u8], event: Event) -> Result<Event> {
        if text[self.position..].starts_with(word) {
            self.position += word.len();
            return Ok(event);
        }
        Err(syntax(text, self.position, "a value"))
    }

    fn open_string(&mut self, text: &[u8], stop: usize) -> Result<Option<Event>> {
        self.position += 1;
        self.string = Text { start: self.position, end: self.position, escaped: false };
        self.string_is_open = true;
        self.read_string(text, stop)
    }

    fn read_string(&mut self, text: &[u8], stop: usize) -> Result<Option<Event>> {
        loop {
            match next_piece(text, self.position, stop)? {
                Piece::Plain(end) => self.position = end,
                Piece::Escaped(_, end) => {
                    self.string.escaped = true;
                    self.position = end;
                }
                Piece::End(end) => {
                    self.string.end = self.position;
                    self.string_is_open = false;
                    self.position = end;
                    if matches!(self.expect, Expect::Key | Expect::FirstKey) {
                        self.expect = Expect::Colon;
                        return Ok(Some(Event::Key));
                    }
                    self.after_value();
                    return Ok(Some(Event::String));
                }
            }
            if self.position >= stop {
                return Ok(None);
            }
        }
    }

    fn open(&mut self, event: Event, expect: Expect) -> Result<Option<Event>> {
        if self.depth == MAX_DEPTH {
            let at = self.position;
            return Err(Error::invalid(format!("the JSON text is nested deeper than {MAX_DEPTH} levels at byte {at}")));
        }
        self.objects = self.objects << 1 | u128::from(matches!(event, Event::BeginObject));
        self.depth += 1;
        self.position += 1;
        self.expect = expect;
        Ok(Some(event))
    }

    fn end(&mut self, event: Event) -> Option<Event> {
        self.position += 1;
        self.close();
        Some(event)
    }

    fn close(&mut self) {
        self.objects >>= 1;
        self.depth = self.depth.saturating_sub(1);
        self.after_value();
    }

    fn after_value(&mut self) {
        self.expect = if self.depth == 0 { Expect::Nothing } else { Expect::Separator };
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn expected(&self) -> &'static str {
        match self.expect {
            Expect::Value => "a value",
            Expect::FirstElement => "a value or `]`",
            Expect::FirstKey => "a key in double quotes or `}`",
            Expect::Key => "a key in double quotes",
            Expect::Colon => "`:`",
            Expect::Separator if self.in_object() => "`,` or `}`",
            Expect::Separator => "`,` or `]`",
            Expect::Nothing => "nothing",
        }
    }
}
