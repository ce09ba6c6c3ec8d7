//! The memory of one answer: all wanted outputs of a request in a single lease of the tenant's domain, each beginning on a
//! cache line. The worker writes them, encoders read them through core's source. Runtime reserves it before the run.

use std::sync::Arc;

use insula_core::{DType, Error, ModelName, OutputTensor, Result, Shape, TensorSource, Version};
use smallvec::SmallVec;

use crate::domain::Domain;
use crate::geometry::round_up_to_line;
use crate::lease::Lease;

/// An output to make room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPlace {
    /// The output's name.
    pub name: Arc<str>,
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// How many bytes it will have (at most, if it is truncated later).
    pub bytes: usize,
}

/// The outputs of a request.
#[derive(Debug)]
pub struct ResponseMemory {
    model_name: ModelName,
    version: Version,
    lease: Lease,
    outputs: SmallVec<[Output; 2]>,
}

#[derive(Debug)]
struct Output {
    place: OutputPlace,
    start: usize,
}

impl ResponseMemory {
    /// Room for `outputs`, in the order in which they were asked for. Fails as [`Domain::lease`] does.
    pub fn reserve(
        domain: &Arc<Domain>,
        model_name: ModelName,
        version: Version,
        outputs: impl IntoIterator<Item = OutputPlace>,
    ) -> Result<ResponseMemory> {
        let mut placed = SmallVec::new();
        let mut end = 0usize;
        for place in outputs {
            let start = round_up_to_line(end);
            let both = start.and_then(|start| Some((start, start.checked_add(place.bytes)?)));
            let Some((start, next)) = both else {
                return Err(Error::invalid(format!("output `{}` needs more bytes than can be addressed", place.name)));
            };
            placed.push(Output { place, start });
            end = next;
        }
        Ok(ResponseMemory { model_name, version, lease: domain.lease(end)?, outputs: placed })
    }

    /// The outputs' bytes, to be written: one slice each, in order.
    pub fn outputs_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let mut rest = self.lease.as_mut_slice();
        let mut at = 0;
        self.outputs.iter().map(move |output| {
            let (_, from_start) = std::mem::take(&mut rest).split_at_mut(output.start - at);
            let (bytes, behind) = from_start.split_at_mut(output.place.bytes);
            rest = behind;
            at = output.start + bytes.len();
            bytes
        })
    }

    /// Shortens output number `index` to its first `bytes` bytes. Fails when there is no such output or it has fewer.
    pub fn truncate(&mut self, index: usize, bytes: usize) -> Result<()> {
        match self.outputs.get_mut(index) {
            Some(output) if bytes <= output.place.bytes => {
                output.place.bytes = bytes;
                Ok(())
            }
            other => {
                let has = other.map(|output| output.place.bytes);
                Err(Error::internal(
                    "an output could not be shortened",
                    format!("number {index} to {bytes}; it has {has:?}"),
                ))
            }
        }
    }

    /// The domain it lies in.
    pub fn domain(&self) -> &Arc<Domain> {
        self.lease.domain()
    }
}

impl TensorSource for ResponseMemory {
    fn model_name(&self) -> &str {
        self.model_name.as_str()
    }

    fn model_version(&self) -> u32 {
        self.version.number()
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn output(&self, index: usize) -> Option<OutputTensor<'_>> {
        let Output { place, start } = self.outputs.get(index)?;
        let bytes = self.lease.as_slice().get(*start..*start + place.bytes)?;
        Some(OutputTensor { name: &place.name, dtype: place.dtype, shape: &place.shape, bytes })
    }
}

#[cfg(test)]
mod tests;
