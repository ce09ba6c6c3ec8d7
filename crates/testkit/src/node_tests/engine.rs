//! One run of a model as the server does it: load, pack the weights, plan, lower, run. Everything here that knows the engine's
//! API stands in this file; it compares nothing.

use std::sync::Arc;

use bytes::Bytes;
use insula_core::{Dimension, Error, Shape, TensorSpec};
use insula_exec::{BatchIo, CpuDevice, Device, EntryIo};
use insula_model::model::LARGEST_MAX_BATCH;
use insula_model::{
    ClassInput, ConstantFolder, LoadError, LoadErrorKind, LoadOptions, Model, ModelFile, NoExternalData,
};

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

impl From<LoadError> for EngineError {
    fn from(error: LoadError) -> EngineError {
        let unsupported = error.kind() == LoadErrorKind::Unsupported;
        EngineError { unsupported, ..EngineError::from(Error::from(error)) }
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
    let file = ModelFile::load(onnx, &NoExternalData, &options)?;
    let signature = file.signature();
    let rows = if signature.batched { rows } else { 1 };
    check_inputs(&signature.inputs, inputs)?;
    let model = model_for(&file, inputs, device.folder())?;
    let weights = device.load_weights(&model)?;
    let logical = model.logical_plan(rows)?;
    let plan = device.lower(&logical, &weights)?;
    let mut rooms: Vec<Vec<u8>> = logical.outputs.iter().map(|output| vec![0; output.bytes.unwrap_or(0)]).collect();
    let entry = EntryIo {
        rows,
        inputs: inputs.iter().map(|input| &input.bytes[..]).collect(),
        outputs: rooms.iter_mut().map(|room| Some(&mut room[..])).collect(),
    };
    let mut batch = BatchIo { entries: [entry].into_iter().collect() };
    let mut arena = Arena::new(plan.arena_bytes());
    plan.run(arena.bytes(), &mut batch, &mut || false).map_err(Error::from)?;
    drop(batch);
    let tensors = logical.outputs.iter().zip(rooms).map(|(output, bytes)| Tensor {
        dtype: output.dtype,
        dims: output.shape.dims().to_vec(),
        bytes: bytes.into(),
    });
    Ok(tensors.collect())
}

/// The model for the class of `inputs`, which is known once it is known which of their values decide shapes.
fn model_for(file: &ModelFile, inputs: &[Tensor], folder: &dyn ConstantFolder) -> Result<Arc<Model>, EngineError> {
    let shapes = inputs.iter().map(|input| Shape::new(&input.dims)).collect::<Result<Vec<_>, Error>>()?;
    let classed: Vec<ClassInput<'_>> =
        shapes.iter().zip(inputs).map(|(shape, input)| ClassInput { shape, bytes: &input.bytes }).collect();
    loop {
        match file.specialise(&file.class(&classed)?, folder) {
            Err(error) if error.kind() == LoadErrorKind::NeedsValues => {}
            other => return Ok(other?),
        }
    }
}

fn check_inputs(specs: &[TensorSpec], inputs: &[Tensor]) -> Result<(), EngineError> {
    if specs.len() != inputs.len() {
        return Err(EngineError::failed(format!("the model takes {} inputs, not {}", specs.len(), inputs.len())));
    }
    for (spec, input) in specs.iter().zip(inputs) {
        let fits = |(dim, size): (&Dimension, &usize)| match dim {
            Dimension::Fixed(fixed) => fixed == size,
            Dimension::Symbolic(_) => true,
        };
        let fits = spec.dims.len() == input.dims.len() && spec.dims.iter().zip(&input.dims).all(fits);
        if spec.dtype != input.dtype || !fits {
            return Err(EngineError::failed(format!(
                "the model takes input `{}` as {} {:?}, not {} {:?}",
                spec.name,
                spec.dtype,
                spec.protocol_shape(),
                input.dtype,
                input.dims
            )));
        }
    }
    Ok(())
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
