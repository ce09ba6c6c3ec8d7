//! One run of a model as the server does it: load, pack the weights, plan, lower, run. Everything here that knows the engine's
//! API stands in this file; it compares nothing.

use bytes::Bytes;
use insula_core::{Error, Shape, TensorSpec};
use insula_exec::{BatchIo, CpuDevice, Device, EntryIo};
use insula_model::model::LARGEST_MAX_BATCH;
use insula_model::{LoadErrorKind, LoadOptions, Model, NoExternalData};

use super::Tensor;

/// Why a model did not give outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    /// Whether it was refused at load because something in it is not supported.
    pub unsupported: bool,
    /// What the engine said.
    pub message: String,
}

impl EngineError {
    fn failed(message: impl Into<String>) -> EngineError {
        EngineError { unsupported: false, message: message.into() }
    }
}

impl From<Error> for EngineError {
    fn from(error: Error) -> EngineError {
        let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        EngineError::failed(format!("{}{detail}", error.message()))
    }
}

/// All outputs of the model in `onnx` for `inputs`, both in the model's order.
pub fn run(onnx: Bytes, inputs: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
    let device = CpuDevice::new();
    let rows = inputs.first().and_then(|input| input.dims.first().copied()).unwrap_or(1).max(1);
    let options = LoadOptions { max_batch: rows.min(LARGEST_MAX_BATCH), ..LoadOptions::new(device.folder()) };
    let model = Model::load(onnx, &NoExternalData, &options).map_err(|error| EngineError {
        unsupported: error.kind() == LoadErrorKind::Unsupported,
        message: error.message().to_string(),
    })?;
    let signature = model.signature();
    let rows = if signature.batched { rows } else { 1 };
    check_inputs(&signature.inputs, inputs, rows)?;
    let weights = device.load_weights(&model)?;
    let plan = device.lower(&model.logical_plan(rows)?, &weights)?;
    let mut outputs = signature.outputs.iter().map(|spec| room(spec, rows)).collect::<Result<Vec<_>, Error>>()?;
    let entry = EntryIo {
        rows,
        inputs: inputs.iter().map(|input| &input.bytes[..]).collect(),
        outputs: outputs.iter_mut().map(|(_, room)| Some(&mut room[..])).collect(),
    };
    let mut batch = BatchIo { entries: [entry].into_iter().collect() };
    let mut arena = Arena::new(plan.arena_bytes());
    plan.run(arena.bytes(), &mut batch, &mut || false).map_err(Error::from)?;
    drop(batch);
    let tensors = signature.outputs.iter().zip(outputs).map(|(spec, (shape, bytes))| Tensor {
        dtype: spec.dtype,
        dims: shape.dims().to_vec(),
        bytes: bytes.into(),
    });
    Ok(tensors.collect())
}

fn check_inputs(specs: &[TensorSpec], inputs: &[Tensor], rows: usize) -> Result<(), EngineError> {
    if specs.len() != inputs.len() {
        return Err(EngineError::failed(format!("the model takes {} inputs, not {}", specs.len(), inputs.len())));
    }
    for (spec, input) in specs.iter().zip(inputs) {
        let shape = spec.shape_for(rows)?;
        if spec.dtype != input.dtype || shape.dims() != input.dims {
            return Err(EngineError::failed(format!(
                "the model takes input `{}` as {} {shape}, not {} {:?}",
                spec.name, spec.dtype, input.dtype, input.dims
            )));
        }
    }
    Ok(())
}

fn room(spec: &TensorSpec, rows: usize) -> Result<(Shape, Vec<u8>), Error> {
    let shape = spec.shape_for(rows)?;
    let bytes = shape.bytes(spec.dtype)?.unwrap_or(0);
    Ok((shape, vec![0; bytes]))
}

/// An arena in which every byte is left over from somebody else.
struct Arena(Vec<Line>);

/// What arenas are aligned to.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Arena {
    fn new(bytes: usize) -> Arena {
        Arena(vec![Line([0xDB; 64]); bytes.div_ceil(64)])
    }

    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
