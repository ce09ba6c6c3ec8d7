//! The rules of the source tree as code: edges between crates, heads, lengths, banned words. Each rule returns the places
//! that break it; the test `tidy` fails with the list. They read files as text and run nothing.

pub mod edges;
pub mod source;
pub mod words;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// All files below `folder` with one of `extensions`, without build outputs and hidden folders, sorted.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if name.starts_with('.') || matches!(name.as_str(), "target" | "node_modules" | "__pycache__" | "state") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// `path` from the root of the checkout, for messages.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
