//! The elements of one output as JSON, commas between them, into whatever room there is: it can stop at any byte and go on
//! in the next call. The reply owns one for each output that is answered in JSON.

use insula_core::validate::next_element;
use insula_core::{DType, OutputTensor, Result};

use super::element::{LONGEST, Short, escape, with_text};
use super::torn;
use crate::json::string::plain_run;

/// How far the writing of an output's elements is.
#[derive(Debug)]
pub(super) struct Elements {
    /// Bytes of the output that have been turned into text.
    read: usize,
    /// Text that did not fit.
    rest: Short,
    /// Bytes of the open string that are still to be written.
    string: Option<usize>,
}

impl Default for Elements {
    fn default() -> Elements {
        Elements { read: 0, rest: Short::EMPTY, string: None }
    }
}

impl Elements {
    /// Whether all of `output` has been written.
    pub(super) fn done(&self, output: &OutputTensor<'_>) -> bool {
        self.read >= output.bytes.len() && self.string.is_none() && self.rest.as_slice().is_empty()
    }

    /// Writes on into `out` and returns how many bytes it took.
    pub(super) fn write(&mut self, output: &OutputTensor<'_>, out: &mut [u8]) -> Result<usize> {
        let mut at = self.rest.drain(out);
        match output.dtype.size() {
            Some(size) => self.write_numbers(output, size, out, &mut at),
            None => self.write_strings(output, out, &mut at)?,
        }
        Ok(at)
    }

    fn write_numbers(&mut self, output: &OutputTensor<'_>, size: usize, out: &mut [u8], at: &mut usize) {
        while *at < out.len()
            && let Some(element) = output.bytes.get(self.read..self.read + size)
        {
            let comma = usize::from(self.read > 0);
            let written = with_text(output.dtype, element, |text| {
                let end = *at + comma + text.len();
                if let Some(place) = out.get_mut(*at..end) {
                    place[0] = b',';
                    place[comma..].copy_from_slice(text.as_bytes());
                    return Ok(end);
                }
                let mut piece = [b','; LONGEST];
                piece[comma..comma + text.len()].copy_from_slice(text.as_bytes());
                Err(Short::new(&piece[..comma + text.len()]))
            });
            match written {
                Some(Ok(end)) => *at = end,
                Some(Err(piece)) => self.push(piece, out, at),
                None => {}
            }
            self.read += size;
        }
    }

    fn write_strings(&mut self, output: &OutputTensor<'_>, out: &mut [u8], at: &mut usize) -> Result<()> {
        debug_assert_eq!(output.dtype, DType::Bytes);
        while *at < out.len() {
            let rest = output.bytes.get(self.read..).unwrap_or_default();
            let Some(left) = self.string else {
                if rest.is_empty() {
                    break;
                }
                let (element, _) = next_element(rest).map_err(|found| torn(output, &found))?;
                self.push(Short::new(if self.read == 0 { b"\"" } else { b",\"" }), out, at);
                self.read += 4;
                self.string = Some(element.len());
                continue;
            };
            let room = out.len() - *at;
            let plain = &rest[..left.min(room).min(rest.len())];
            let plain = &plain[..plain_run(plain)];
            out[*at..*at + plain.len()].copy_from_slice(plain);
            *at += plain.len();
            self.read += plain.len();
            let left = left - plain.len();
            self.string = (left > 0).then_some(left);
            if left == 0 {
                self.push(Short::new(b"\""), out, at);
            } else if let Some(&special) = rest.get(plain.len())
                && plain.len() < room
            {
                self.push(escape(special), out, at);
                self.read += 1;
                self.string = Some(left - 1);
            }
        }
        Ok(())
    }

    /// Writes `piece`, or what fits of it; the rest waits for the next call.
    fn push(&mut self, mut piece: Short, out: &mut [u8], at: &mut usize) {
        *at += piece.drain(out.get_mut(*at..).unwrap_or_default());
        self.rest = piece;
    }
}
