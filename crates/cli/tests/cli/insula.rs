//! Runs the binary under test: in a folder of its own, without the environment of whoever runs the tests.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A command that is being put together.
pub struct Insula {
    command: Command,
    input: Vec<u8>,
    folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub data: String,
    pub words: String,
}

/// `insula` with `arguments`.
pub fn insula<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Insula {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_insula"));
    command.args(arguments).env_clear().current_dir(folder.path());
    Insula { command, input: Vec::new(), folder }
}

impl Insula {
    /// With `value` in the environment variable `name`.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Insula {
        self.command.env(name, value);
        self
    }

    /// With `input` on the standard input.
    pub fn input(mut self, input: &[u8]) -> Insula {
        self.input = input.to_vec();
        self
    }

    /// With `text` in the file `name` of the folder that it runs in.
    pub fn file(self, name: &str, text: &str) -> Insula {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// The command itself and the folder, for tests that wire it up otherwise.
    pub fn into_parts(self) -> (Command, TempDir) {
        (self.command, self.folder)
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Ended {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        // A command that does not read its input closes it; what is then left to write is of no interest.
        let _ = child.stdin.take().unwrap().write_all(&self.input);
        Ended::from(child.wait_with_output().unwrap())
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code(), data: text(output.stdout), words: text(output.stderr) }
    }
}

/// A path below the root of the project.
pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// `path` as text, for arguments.
pub fn argument(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
