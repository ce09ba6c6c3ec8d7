//! The entries of a request's `outputs` and the form in which each is to be answered. It knows no tensor; the envelope feeds
//! it.

use insula_core::{Error, ModelSignature, RequestedOutput, Result};
use smallvec::SmallVec;

/// The outputs asked for so far, and the entry being read.
#[derive(Debug, Default)]
pub(super) struct OutputDrafts {
    wanted: Vec<RequestedOutput>,
    binary: SmallVec<[Option<bool>; 4]>,
    output: Option<usize>,
    /// The parameter `binary_data` of the entry being read.
    pub(super) binary_data: Option<bool>,
}

impl OutputDrafts {
    /// A new entry begins.
    pub(super) fn begin(&mut self) {
        (self.output, self.binary_data) = (None, None);
    }

    /// The entry's name is that of the model's output number `output`.
    pub(super) fn set_output(&mut self, output: usize, signature: &ModelSignature) -> Result<()> {
        self.output = Some(output);
        if self.wanted.contains(&RequestedOutput { output }) {
            return Err(Error::invalid(format!("{} is asked for twice", self.label(signature))));
        }
        Ok(())
    }

    /// How messages call the entry.
    pub(super) fn label(&self, signature: &ModelSignature) -> String {
        match self.output.and_then(|output| signature.outputs.get(output)) {
            Some(spec) => format!("output `{}`", spec.name),
            None => format!("output number {}", self.wanted.len()),
        }
    }

    /// The entry is over.
    pub(super) fn end(&mut self, signature: &ModelSignature) -> Result<()> {
        let Some(output) = self.output else {
            return Err(Error::invalid(format!("{} has no `name`", self.label(signature))));
        };
        self.wanted.push(RequestedOutput { output });
        self.binary.push(self.binary_data);
        Ok(())
    }

    /// The outputs asked for (none: all), and for each that will be answered whether as binary data; `default` where the
    /// caller did not say.
    pub(super) fn finish(
        self,
        signature: &ModelSignature,
        default: bool,
    ) -> (Vec<RequestedOutput>, SmallVec<[bool; 4]>) {
        let binary = if self.wanted.is_empty() {
            SmallVec::from_elem(default, signature.outputs.len())
        } else {
            self.binary.iter().map(|binary| binary.unwrap_or(default)).collect()
        };
        (self.wanted, binary)
    }
}
