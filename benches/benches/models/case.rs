//! What is measured: a model file and one request's inputs, as `benches/model_peer.py` wrote them. It only reads.

use std::error::Error;
use std::path::Path;

use insula_core::{DType, Shape};
use serde::Deserialize;

/// A model with inputs.
#[derive(Debug)]
pub struct Case {
    /// What it is called in the table.
    pub label: String,
    /// The file in the folder.
    pub model: String,
    /// The inputs in the model's order.
    pub inputs: Vec<Input>,
}

/// An input's tensor.
#[derive(Debug)]
pub struct Input {
    pub shape: Shape,
    /// Copied so that it is aligned as a tenant's memory is.
    pub words: Vec<u64>,
    pub bytes: usize,
}

#[derive(Deserialize)]
struct CaseEntry {
    label: String,
    model: String,
    inputs: Vec<InputEntry>,
}

#[derive(Deserialize)]
struct InputEntry {
    dtype: String,
    shape: Vec<usize>,
    file: String,
}

impl Case {
    /// All cases of a folder.
    pub fn read_all(folder: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
        let text = std::fs::read(folder.join("cases.json"))?;
        let entries: Vec<CaseEntry> = serde_json::from_slice(&text)?;
        entries.into_iter().map(|entry| Case::read(folder, entry)).collect()
    }

    fn read(folder: &Path, entry: CaseEntry) -> Result<Case, Box<dyn Error>> {
        let inputs = entry.inputs.iter().map(|input| Input::read(folder, input)).collect::<Result<_, _>>()?;
        Ok(Case { label: entry.label, model: entry.model, inputs })
    }
}

impl Input {
    fn read(folder: &Path, entry: &InputEntry) -> Result<Input, Box<dyn Error>> {
        let shape = Shape::new(&entry.shape)?;
        let dtype: DType = match entry.dtype.as_str() {
            "float32" => DType::Fp32,
            "int32" => DType::Int32,
            "int64" => DType::Int64,
            other => return Err(format!("an input of type {other} is not foreseen here").into()),
        };
        let data = std::fs::read(folder.join(&entry.file))?;
        if shape.bytes(dtype)? != Some(data.len()) {
            return Err(format!("{} has {} bytes, which is not {dtype} {shape}", entry.file, data.len()).into());
        }
        let mut words = vec![0u64; data.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..data.len()].copy_from_slice(&data);
        Ok(Input { shape, words, bytes: data.len() })
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}
