//! insula's side: a model loaded, planned for one request's sizes and lowered as the server does it, in an arena of its own.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use insula_benches::rounds::Rounds;
use insula_exec::{BatchIo, CpuDevice, Device, EntryIo, LoweredPlan};
use insula_model::shape_class::ClassInput;
use insula_model::{LoadErrorKind, LoadOptions, LogicalPlan, Model, ModelFile, NoExternalData};

use crate::case::Case;

/// A case that is ready to run.
pub struct Engine {
    pub logical: LogicalPlan,
    plan: Arc<dyn LoweredPlan>,
    arena: Vec<Line>,
    inputs: Vec<Vec<u64>>,
    input_bytes: Vec<usize>,
    outputs: Vec<Vec<u64>>,
    output_bytes: Vec<usize>,
    rows: usize,
}

#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Engine {
    /// Loads and lowers a case.
    pub fn load(device: &CpuDevice, folder: &Path, case: &Case) -> Result<Engine, Box<dyn Error>> {
        let file = std::fs::read(folder.join(&case.model))?;
        let options = LoadOptions::new(device.folder());
        let file = ModelFile::load(file.into(), &NoExternalData, &options).map_err(|error| error.to_string())?;
        let rows = match file.signature().batched {
            true => case.inputs[0].shape.dims()[0],
            false => 1,
        };
        let model = specialise(&file, case, device)?;
        let weights = device.load_weights(&model)?;
        let logical = model.logical_plan(rows)?;
        let plan = device.lower(&logical, &weights)?;
        let output_bytes: Vec<usize> = logical.outputs.iter().map(|output| output.bytes.unwrap_or(0)).collect();
        Ok(Engine {
            arena: vec![Line([0; 64]); plan.arena_bytes().div_ceil(64)],
            inputs: case.inputs.iter().map(|input| input.words.clone()).collect(),
            input_bytes: case.inputs.iter().map(|input| input.bytes).collect(),
            outputs: output_bytes.iter().map(|bytes| vec![0; bytes.div_ceil(8)]).collect(),
            output_bytes,
            logical,
            plan,
            rows,
        })
    }

    /// Runs for `time` and gives the median milliseconds of a run.
    pub fn turn(&mut self, time: Duration) -> Result<f64, Box<dyn Error>> {
        let (mut runs, end) = (Rounds::default(), Instant::now() + time);
        while Instant::now() < end {
            let start = Instant::now();
            self.run(None)?;
            runs.add(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(runs.median())
    }

    /// Runs once; with `times` notes the time of each step.
    pub fn run(&mut self, times: Option<&mut Vec<Duration>>) -> Result<(), Box<dyn Error>> {
        let inputs = self.inputs.iter().zip(&self.input_bytes);
        let outputs = self.outputs.iter_mut().zip(&self.output_bytes);
        let entry = EntryIo {
            rows: self.rows,
            inputs: inputs.map(|(words, bytes)| &bytemuck::cast_slice(words)[..*bytes]).collect(),
            outputs: outputs.map(|(words, bytes)| Some(&mut bytemuck::cast_slice_mut(words)[..*bytes])).collect(),
        };
        let mut batch = BatchIo { entries: [entry].into_iter().collect() };
        let arena = bytemuck::cast_slice_mut(&mut self.arena);
        match times {
            Some(times) => self.plan.run_timed(arena, &mut batch, &mut || false, times)?,
            None => self.plan.run(arena, &mut batch, &mut || false)?,
        }
        Ok(())
    }
}

/// The model for the case's sizes.
fn specialise(file: &ModelFile, case: &Case, device: &CpuDevice) -> Result<Arc<Model>, Box<dyn Error>> {
    let inputs: Vec<ClassInput<'_>> =
        case.inputs.iter().map(|input| ClassInput { shape: &input.shape, bytes: input.bytes() }).collect();
    loop {
        match file.specialise(&file.class(&inputs)?, device.folder()) {
            Ok(model) => return Ok(model),
            Err(error) if error.kind() == LoadErrorKind::NeedsValues => {}
            Err(error) => return Err(error.to_string().into()),
        }
    }
}
