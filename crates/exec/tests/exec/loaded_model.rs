//! Loading models from the examples folder and running batches of them.

use std::path::PathBuf;
use std::sync::Arc;

use insula_core::DType;
use insula_exec::{BatchIo, CpuDevice, Device, EntryIo, ExecError, LoweredPlan};
use insula_model::{LoadOptions, Model, NoExternalData, Precision};
use smallvec::SmallVec;

/// A file or folder under `examples/`.
pub fn example(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).join(path)
}

/// The floats in a file of little-endian 32-bit floats.
pub fn stored_floats(path: &str) -> Vec<f32> {
    let bytes = std::fs::read(example(path)).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Bytes as numbers.
pub fn elements<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// A model on the CPU.
pub struct Loaded {
    pub device: CpuDevice,
    pub model: Arc<Model>,
    pub weights: Arc<dyn insula_exec::Weights>,
}

impl Loaded {
    /// The version of an example model, e.g. `models/digits/1`, with constants folded by the device.
    pub fn new(version: &str, precision: Precision) -> Loaded {
        let file = std::fs::read(example(version).join("model.onnx")).unwrap();
        Loaded::from_bytes(file, precision)
    }

    pub fn from_bytes(onnx: Vec<u8>, precision: Precision) -> Loaded {
        Loaded::on(CpuDevice::new(), onnx, precision)
    }

    pub fn on(device: CpuDevice, onnx: Vec<u8>, precision: Precision) -> Loaded {
        let options = LoadOptions { precision, ..LoadOptions::new(device.folder()) };
        let model = Model::load(onnx.into(), &NoExternalData, &options).unwrap();
        let weights = device.load_weights(&model).unwrap();
        Loaded { device, model, weights }
    }

    pub fn lower(&self, bucket: usize) -> Arc<dyn LoweredPlan> {
        self.device.lower(&self.model.logical_plan(bucket).unwrap(), &self.weights).unwrap()
    }

    /// All outputs of one request with `rows` rows, run in the bucket for `bucket` rows.
    pub fn answer(&self, bucket: usize, rows: usize, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut outputs = self.rooms(rows, inputs);
        run_entries(&*self.lower(bucket), &[(rows, inputs)], &mut [&mut outputs]).unwrap();
        outputs
    }

    /// Room for the outputs of `rows` rows.
    pub fn rooms(&self, rows: usize, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
        let signature = self.model.signature();
        let room = |spec: &insula_core::TensorSpec| match spec.dtype {
            DType::Bytes => inputs[0].len(),
            dtype => {
                spec.protocol_shape().iter().map(|size| usize::try_from(*size).unwrap_or(rows)).product::<usize>()
                    * dtype.size().unwrap()
            }
        };
        signature.outputs.iter().map(|spec| vec![0; room(spec)]).collect()
    }
}

/// Runs requests as one batch in an arena full of old values.
pub fn run_entries(
    plan: &dyn LoweredPlan,
    requests: &[(usize, &[&[u8]])],
    outputs: &mut [&mut Vec<Vec<u8>>],
) -> Result<(), ExecError> {
    let mut arena = Arena::new(plan.arena_bytes());
    let mut batch = BatchIo::default();
    for (request, outputs) in requests.iter().zip(outputs) {
        let (rows, inputs) = request;
        batch.entries.push(EntryIo {
            rows: *rows,
            inputs: SmallVec::from_slice(inputs),
            outputs: outputs.iter_mut().map(|room| Some(&mut room[..])).collect(),
        });
    }
    plan.run(arena.bytes(), &mut batch, &mut || false)
}

/// An arena in which every byte is left over from somebody else.
pub struct Arena(Vec<Line>);

/// What arenas are aligned to.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Arena {
    pub fn new(bytes: usize) -> Arena {
        Arena(vec![Line([0xDB; 64]); bytes.div_ceil(64)])
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
