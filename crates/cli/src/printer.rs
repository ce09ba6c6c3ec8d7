//! What people and programs read: data on the standard output, words on the standard error, colours where a terminal shows
//! them. A reader that goes away early (a broken pipe) is no failure. Commands print through it and never directly.

use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::failure::Failure;
use insula_api::status::ExitCode;

/// What went right.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What deserves a look.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What to do about it.
pub const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// Names of columns.
pub const HEADING: Style = Style::new().bold();

/// The two outputs of the process.
pub struct Printer {
    data: Box<dyn Write>,
    words: Box<dyn Write>,
    fault: Option<io::Error>,
}

impl Printer {
    /// The process's own outputs.
    pub fn new() -> Printer {
        Printer::to(Box::new(anstream::stdout()), Box::new(anstream::stderr()))
    }

    fn to(data: Box<dyn Write>, words: Box<dyn Write>) -> Printer {
        Printer { data, words, fault: None }
    }

    /// Writes data. After the first fault nothing more is written; [`Printer::finish`] judges it.
    pub fn data(&mut self, data: impl AsRef<[u8]>) {
        if self.fault.is_none() {
            self.fault = self.data.write_all(data.as_ref()).err();
        }
    }

    /// Writes a line of words. Where those cannot be written, there is no place left to say so.
    pub fn words(&mut self, words: impl fmt::Display) {
        let _ = writeln!(self.words, "{words}");
    }

    /// Writes an `error:` line for each message of `failure` and a `hint:` line for each hint.
    pub fn failure(&mut self, failure: &Failure) {
        for message in failure.messages() {
            self.words(format_args!("{BAD}error{BAD:#}: {message}"));
        }
        for hint in failure.hints() {
            self.words(format_args!("{HINT}hint{HINT:#}: {hint}"));
        }
    }

    /// Flushes, and says how the process ends after a command that ended with `status`.
    pub fn finish(mut self, status: ExitCode) -> ExitCode {
        let flushed = self.data.flush();
        match self.fault.take().or(flushed.err()) {
            None => status,
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => status,
            Some(error) => {
                self.failure(&Failure::new(format_args!("the standard output cannot be written: {error}")));
                ExitCode::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Rc<RefCell<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn finish_after_writing_to(kind: io::ErrorKind) -> (ExitCode, String) {
        let words = Paper::default();
        let mut printer = Printer::to(Box::new(Broken(kind)), Box::new(words.clone()));
        printer.data("one");
        printer.data("two");
        let status = printer.finish(ExitCode::Done);
        let words = String::from_utf8(words.0.take()).unwrap();
        (status, words)
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        assert_eq!(finish_after_writing_to(io::ErrorKind::BrokenPipe), (ExitCode::Done, String::new()));
    }

    #[test]
    fn a_full_disk_is_a_failure() {
        let (status, words) = finish_after_writing_to(io::ErrorKind::StorageFull);
        assert_eq!(status, ExitCode::Failed);
        assert!(words.contains("the standard output cannot be written"), "{words}");
    }

    #[test]
    fn data_and_words_do_not_mix() {
        let (data, words) = (Paper::default(), Paper::default());
        let mut printer = Printer::to(Box::new(data.clone()), Box::new(words.clone()));
        printer.data("1\n");
        printer.failure(&Failure::new("it broke").hint("mend it"));
        assert_eq!(printer.finish(ExitCode::Failed), ExitCode::Failed);
        assert_eq!(data.0.take(), b"1\n");
        let words = String::from_utf8(words.0.take()).unwrap();
        assert!(words.contains("it broke\n") && words.contains("mend it\n"), "{words}");
    }
}
