//! The files in which Linux tells about itself, below a root that tests replace by a folder of their own. It reads text and
//! numbers and judges nothing; what is absent or unreadable is `None`.

use std::fs;
use std::path::{Path, PathBuf};

/// `/proc` and `/sys` below a root.
#[derive(Debug, Clone)]
pub struct MachineFiles {
    root: PathBuf,
}

impl MachineFiles {
    /// The files of this machine.
    pub fn of_this_machine() -> MachineFiles {
        MachineFiles::below("/")
    }

    /// The files below `root`.
    pub fn below(root: impl Into<PathBuf>) -> MachineFiles {
        MachineFiles { root: root.into() }
    }

    /// The text of the file at `path`, relative to the root and without the line break at its end.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim_end().to_owned())
    }

    /// The number that the file at `path` holds.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// What follows `name` and a colon on its line of the file at `path`, such as `MemTotal` of `proc/meminfo`.
    pub fn field(&self, path: impl AsRef<Path>, name: &str) -> Option<String> {
        let text = self.text(path)?;
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    }

    /// The names in the folder at `path`, sorted; empty when there is none.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is a folder at `path`.
    pub fn has_folder(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).is_dir()
    }
}

/// A folder with `files` (path, text) in it, for tests of what reads them.
#[cfg(test)]
pub fn folder_with(files: &[(&str, &str)]) -> (tempfile::TempDir, MachineFiles) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let machine = MachineFiles::below(folder.path());
    (folder, machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_numbers_and_fields_are_read() {
        let (_folder, machine) =
            folder_with(&[("proc/n", "42\n"), ("proc/meminfo", "MemTotal:  8 kB\nMemFree: 4 kB\n")]);
        assert_eq!(machine.number("proc/n"), Some(42));
        assert_eq!(machine.field("proc/meminfo", "MemFree").as_deref(), Some("4 kB"));
        assert_eq!(machine.names("proc"), ["meminfo", "n"]);
    }

    #[test]
    fn what_is_not_there_is_none() {
        let (_folder, machine) = folder_with(&[("proc/n", "many")]);
        assert_eq!(
            (machine.number("proc/n"), machine.text("proc/x"), machine.field("proc/n", "a")),
            (None, None, None)
        );
        assert!(machine.names("sys").is_empty() && !machine.has_folder("sys"));
    }
}
