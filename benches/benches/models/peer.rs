//! onnxruntime in a Python process of its own, told by lines what to load and how long to run. It takes turns, so nothing of it
//! runs while insula does.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The process.
pub struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it with the interpreter in `INSULA_BENCH_PYTHON`, else `python3`.
    pub fn start(folder: &Path, threads: usize) -> Result<Peer, Box<dyn Error>> {
        let python = std::env::var_os("INSULA_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
        let script = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/model_peer.py"));
        let mut command = Command::new(python);
        command.arg(script).arg("peer").arg(folder).arg(threads.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().ok_or("the peer has no input")?;
        let answers = BufReader::new(child.stdout.take().ok_or("the peer has no output")?);
        Ok(Peer { child, orders, answers })
    }

    /// Loads a case.
    pub fn load(&mut self, label: &str) -> Result<(), Box<dyn Error>> {
        self.ask(&format!("load {label}")).map(|_| ())
    }

    /// Runs for `time` and gives the median milliseconds of a run.
    pub fn turn(&mut self, time: Duration) -> Result<f64, Box<dyn Error>> {
        Ok(self.ask(&format!("run {}", time.as_secs_f64()))?.parse()?)
    }

    fn ask(&mut self, order: &str) -> Result<String, Box<dyn Error>> {
        writeln!(self.orders, "{order}")?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(format!("the peer ended at `{order}`: {}", self.child.wait()?).into());
        }
        Ok(answer.trim().to_string())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
