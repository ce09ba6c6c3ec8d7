//! Rules for Rust sources: module heads, lengths of files and functions, no `unwrap` outside tests. Functions are found by
//! matching braces in text without strings, characters and comments.

use std::path::Path;

use super::{files, root, shown};

/// The most lines a file may have.
const FILE_LINES: usize = 600;

/// The most lines a function may have.
const FUNCTION_LINES: usize = 80;

/// Functions that may be longer, each with its reason: a `match` over a closed enum reads best in one piece.
const LONG_FUNCTIONS: [(&str, &str); 0] = [];

/// Files that may be longer, each with its reason.
const LONG_FILES: [&str; 0] = [];

/// Folders whose files are tests, and may be called so by what stands in their path.
fn is_test_path(path: &Path) -> bool {
    let shown = shown(path);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    shown.contains("/tests/")
        || stem == "tests"
        || stem.starts_with("test_")
        || shown.contains("/testkit/")
        || shown.contains("/fuzz/")
}

fn rust_files() -> Vec<std::path::PathBuf> {
    files(&root(), &["rs"])
}

/// Files that do not open with a `//!` head.
pub fn without_head() -> Vec<String> {
    let headless = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        (!text.starts_with("//!")).then(|| format!("{}: the first line must be a //! head", shown(path)))
    };
    rust_files().iter().filter_map(headless).collect()
}

/// Files and functions over their length.
pub fn too_long() -> Vec<String> {
    let mut faults = Vec::new();
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let (name, lines) = (shown(&path), text.lines().count());
        if lines > FILE_LINES && !LONG_FILES.contains(&name.as_str()) {
            faults.push(format!("{name}: {lines} lines, at most {FILE_LINES}"));
        }
        for (function, length) in functions(&text) {
            let excused = LONG_FUNCTIONS.contains(&(name.as_str(), function.as_str()));
            if length > FUNCTION_LINES && !excused {
                faults.push(format!("{name}: fn {function} has {length} lines, at most {FUNCTION_LINES}"));
            }
        }
    }
    faults
}

/// `unwrap()` and `panic!` outside tests.
pub fn unwraps() -> Vec<String> {
    let mut faults = Vec::new();
    for path in rust_files().iter().filter(|path| !is_test_path(path)) {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub fn "];
        let end = tests.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
        let production = &text[..end];
        for (number, line) in production.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if code.contains(".unwrap()") {
                faults.push(format!("{}:{}: unwrap() outside tests", shown(path), number + 1));
            }
        }
    }
    faults
}

/// Names and lengths in lines of all functions of `text`.
pub fn functions(text: &str) -> Vec<(String, usize)> {
    let code = blank_literals(text);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = code[at..].find("fn ") {
        let start = at + next;
        at = start + 3;
        let before = code[..start].bytes().next_back().unwrap_or(b' ');
        let name: String = code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.is_empty() || before.is_ascii_alphanumeric() || before == b'_' {
            continue;
        }
        if let Some(end) = body_end(code.as_bytes(), at) {
            let lines = code[start..end].bytes().filter(|byte| *byte == b'\n').count() + 1;
            found.push((name, lines));
        }
    }
    found
}

/// The end of the body that begins at the first brace after `from`; `None` for a declaration without a body.
fn body_end(code: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut brackets = 0usize;
    for (offset, byte) in code[from..].iter().enumerate() {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b';' if depth == 0 && brackets == 0 => return None,
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(from + offset),
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// `text` with the insides of comments, strings and character literals replaced by spaces, so that braces count.
fn blank_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'/', b'/', ..] => text[at..].find('\n').map_or(bytes.len(), |length| at + length),
            [b'/', b'*', ..] => text[at..].find("*/").map_or(bytes.len(), |length| at + length + 2),
            [b'r', b'"', ..] => text[at + 2..].find('"').map_or(bytes.len(), |length| at + length + 3),
            [b'r', b'#', b'"', ..] => text[at + 3..].find("\"#").map_or(bytes.len(), |length| at + length + 5),
            [b'"', ..] => string_end(bytes, at),
            [b'\'', b'\\', ..] => text[at + 2..].find('\'').map_or(bytes.len(), |length| at + length + 3),
            [b'\'', _, b'\'', ..] => at + 3,
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_past_braces_in_literals() {
        let text =
            "fn a() {\n  let s = \"}\"; // }\n  let c = '{';\n}\nfn b();\nimpl X { fn c(x: [u8; 3]) -> u8 {\n 1\n} }";
        assert_eq!(functions(text), [("a".to_string(), 4), ("c".to_string(), 3)]);
    }
}
