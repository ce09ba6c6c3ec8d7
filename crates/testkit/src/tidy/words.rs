//! Words that must not stand in the tree: unfinished marks, module names that say nothing, and paths of some machine. And
//! what may stand at the top level.

use super::{files, root, shown};

/// Marks of unfinished work, put together here so that this file does not hold them.
fn unfinished_marks() -> [String; 5] {
    [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["todo", "!("].concat(),
        ["unimplemented", "!("].concat(),
        ["#[ign", "ore"].concat(),
    ]
}

/// Module names that say nothing.
const EMPTY_NAMES: [&str; 5] = ["utils", "util", "helpers", "common", "misc"];

/// What the top level holds beside dot-files.
const TOP_LEVEL: [&str; 15] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "kernels",
    "tenants",
    "docs",
    "examples",
    "benches",
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "clippy.toml",
    "rustfmt.toml",
    "deny.toml",
];

/// Unfinished marks in sources and scripts.
pub fn unfinished() -> Vec<String> {
    let mut faults = Vec::new();
    for path in files(&root(), &["rs", "py", "sh", "toml"]) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            if unfinished_marks().iter().any(|mark| line.contains(mark.as_str())) {
                faults.push(format!("{}:{}: unfinished: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    faults
}

/// Files and folders whose names say nothing.
pub fn empty_names() -> Vec<String> {
    let says_nothing = |path: &std::path::PathBuf| {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let empty = EMPTY_NAMES.contains(&stem.as_str()) || stem == "mod";
        empty.then(|| format!("{}: the name does not say what is in it", shown(path)))
    };
    files(&root(), &["rs"]).iter().filter_map(says_nothing).collect()
}

/// Entries of the top level that do not belong there.
pub fn strangers_at_the_top() -> Vec<String> {
    let entries = std::fs::read_dir(root()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| {
            !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()) && name != "target" && name != "state"
        })
        .map(|name| format!("{name}: does not belong at the top level"))
        .collect()
}
