//! Collects the faults of one document while its sections are read, and knows the text: which line a place is on and what
//! may be shown of it. It judges nothing itself; [`super::section`] does.

use std::ops::Range;

use super::fault::{DocumentFaults, Fault};

/// The most characters of the text that a message repeats.
const SHOWN: usize = 80;

/// The faults found so far.
pub(super) struct Checker<'t> {
    text: &'t str,
    /// Where each line begins.
    line_starts: Vec<usize>,
    faults: Vec<Fault>,
    beyond: usize,
}

impl<'t> Checker<'t> {
    pub(super) fn new(text: &'t str) -> Checker<'t> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Checker { text, line_starts: std::iter::once(0).chain(breaks).collect(), faults: Vec::new(), beyond: 0 }
    }

    /// The line, from 1, that the byte at `at` stands on.
    pub(super) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// Notes that `key`, which stands at byte `at`, is wrong in the way that `message` says.
    pub(super) fn fault(&mut self, at: usize, key: &str, message: String) {
        if self.faults.len() < DocumentFaults::MAX {
            self.faults.push(Fault { line: Some(self.line(at)), key: key.to_owned(), message });
        } else {
            self.beyond += 1;
        }
    }

    /// What stands at `span`, shortened to part of one line, for a message.
    pub(super) fn shown(&self, span: Range<usize>) -> String {
        let text = self.text.get(span).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let mut shown: String = line.chars().filter(|character| !character.is_control()).take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push_str("...");
        }
        shown
    }

    /// What the TOML parser found wrong with the text itself.
    pub(super) fn syntax_faults(mut self, errors: &[toml::de::Error]) -> DocumentFaults {
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            self.fault(at, "", format!("not TOML: {message}"));
        }
        self.finish().unwrap_or_else(|| DocumentFaults::of_file("not TOML"))
    }

    /// All faults; `None` if there are none.
    pub(super) fn finish(self) -> Option<DocumentFaults> {
        DocumentFaults::new(self.faults, self.beyond)
    }
}
