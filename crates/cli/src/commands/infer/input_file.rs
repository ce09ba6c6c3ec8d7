//! Reads what is to be sent and tells by its first bytes what it is: a PNG or a JSON request. It decodes neither.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// The eight bytes that begin every PNG.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputFile {
    /// The whole file, a PNG.
    Png(Vec<u8>),
    /// The whole file, a JSON object.
    Json(Vec<u8>),
}

impl InputFile {
    /// Reads `path`, or the standard input when it is `-`.
    pub fn read(path: &Path) -> Result<InputFile, Failure> {
        let shown = path.display();
        let unreadable = |error: io::Error| Failure::misused(format_args!("{shown} cannot be read: {error}"));
        if path == Path::new("-") {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
            return InputFile::recognise("the standard input", bytes);
        }
        InputFile::recognise(&shown.to_string(), fs::read(path).map_err(unreadable)?)
    }

    fn recognise(name: &str, bytes: Vec<u8>) -> Result<InputFile, Failure> {
        if bytes.starts_with(PNG_SIGNATURE) {
            return Ok(InputFile::Png(bytes));
        }
        if bytes.trim_ascii_start().first() == Some(&b'{') {
            return Ok(InputFile::Json(bytes));
        }
        let what = if bytes.is_empty() { "is empty" } else { "is neither a PNG image nor a JSON request" };
        Err(Failure::misused(format_args!("{name} {what}"))
            .hint("send a PNG, or a JSON object with `inputs` as the Open Inference Protocol v2 has it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_bytes() {
        let png = [PNG_SIGNATURE, b"rest"].concat();
        assert_eq!(InputFile::recognise("x", png.clone()), Ok(InputFile::Png(png)));
        let json = b"\n {\"inputs\": []}".to_vec();
        assert_eq!(InputFile::recognise("x", json.clone()), Ok(InputFile::Json(json)));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for (bytes, words) in [(&b""[..], "is empty"), (b"\xff\xd8\xff\xe0 JFIF", "neither"), (b"[1, 2]", "neither")] {
            let failure = InputFile::recognise("photo.jpg", bytes.to_vec()).unwrap_err();
            assert!(
                failure.messages()[0].starts_with("photo.jpg ") && failure.messages()[0].contains(words),
                "{failure:?}"
            );
        }
    }
}
