//! Turns an ONNX tensor into a constant: every way of storing elements, each checked against the declared dimensions. It
//! holds the load's budget of constant bytes, which is charged before memory is taken. The reader calls it.

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use insula_core::{DType, Shape};
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadErrorKind, LoadResult, quoted};
use crate::external_data::{ExternalData, NoExternalData};
use crate::onnx::{TensorProto, data_type};

/// Reads tensors until their bytes exceed a budget.
#[derive(Debug)]
pub struct TensorReader<'a> {
    external: &'a dyn ExternalData,
    limit: u64,
    used: Cell<u64>,
}

impl<'a> TensorReader<'a> {
    /// A reader that takes external data from `external` and refuses more than `limit` bytes in all.
    pub fn new(external: &'a dyn ExternalData, limit: u64) -> TensorReader<'a> {
        TensorReader { external, limit, used: Cell::new(0) }
    }

    /// For tensors that hold their elements themselves and have been charged before.
    pub fn settled() -> TensorReader<'static> {
        TensorReader::new(&NoExternalData, u64::MAX)
    }

    /// The constant that `tensor` describes. The error does not name the tensor.
    pub fn read(&self, tensor: &TensorProto) -> LoadResult<Constant> {
        let dtype = element_type(tensor.data_type)?;
        let mut dims = SmallVec::<[usize; 4]>::new();
        for &dim in &tensor.dims {
            dims.push(
                usize::try_from(dim).map_err(|_| LoadError::malformed(format!("a dimension of its shape is {dim}")))?,
            );
        }
        let shape = Shape::new(&dims)?;
        let Some(bytes) = shape.bytes(dtype)? else {
            return Err(LoadError::unsupported("a constant of type STRING; numbers and booleans are supported"));
        };
        self.charge(bytes)?;
        match tensor.data_location {
            0 => inline(tensor, dtype, shape, bytes),
            1 => self.external(tensor, dtype, shape, bytes),
            other => Err(LoadError::malformed(format!("data_location is {other}, expected 0 or 1"))),
        }
    }

    /// Brings elements that lie in external data or in the file's own bytes into `tensor`.
    pub fn settle(&self, tensor: &mut TensorProto) -> LoadResult<()> {
        if tensor.data_location == 1 {
            let constant = self.read(tensor)?;
            tensor.raw_data = Bytes::copy_from_slice(constant.bytes());
            tensor.data_location = 0;
            tensor.external_data.clear();
        } else if !tensor.raw_data.is_empty() {
            self.charge(tensor.raw_data.len())?;
            tensor.raw_data = Bytes::copy_from_slice(&tensor.raw_data);
        }
        Ok(())
    }

    fn charge(&self, bytes: usize) -> LoadResult<()> {
        self.used.set(self.used.get().saturating_add(bytes as u64));
        match self.used.get() > self.limit {
            true => {
                Err(LoadError::limit(format!("the model's constants have more than {} bytes, the limit", self.limit)))
            }
            false => Ok(()),
        }
    }

    fn external(&self, tensor: &TensorProto, dtype: DType, shape: Shape, bytes: usize) -> LoadResult<Constant> {
        let entries: BTreeMap<&str, &str> =
            tensor.external_data.iter().map(|entry| (&*entry.key, &*entry.value)).collect();
        let refused = |why: String| LoadError::new(LoadErrorKind::ExternalData, format!("external data: {why}"));
        let number = |key: &str| match entries.get(key).filter(|text| !text.is_empty()) {
            Some(text) => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| refused(format!("its {key} must be a whole number from 0 to {}", u64::MAX))),
            None => Ok(None),
        };
        let location = entries.get("location").ok_or_else(|| refused("it has no location".into()))?;
        if let Some(length) = number("length")?.filter(|length| *length != bytes as u64) {
            return Err(refused(format!(
                "its length is {length}, but a {dtype} tensor of shape {shape} has {bytes} bytes"
            )));
        }
        let read = self.external.read(location, number("offset")?.unwrap_or(0), bytes)?;
        Ok(Constant::new(dtype, shape, &read)?)
    }
}

/// The type for ONNX's number, with a refusal that lists those there are.
pub fn element_type(number: i32) -> LoadResult<DType> {
    Ok(match number {
        data_type::FLOAT => DType::Fp32,
        data_type::FLOAT16 => DType::Fp16,
        data_type::BFLOAT16 => DType::Bf16,
        data_type::DOUBLE => DType::Fp64,
        data_type::UINT8 => DType::Uint8,
        data_type::UINT16 => DType::Uint16,
        data_type::UINT32 => DType::Uint32,
        data_type::UINT64 => DType::Uint64,
        data_type::INT8 => DType::Int8,
        data_type::INT16 => DType::Int16,
        data_type::INT32 => DType::Int32,
        data_type::INT64 => DType::Int64,
        data_type::BOOL => DType::Bool,
        data_type::STRING => DType::Bytes,
        other => {
            return Err(LoadError::unsupported(format!(
                "element type {other}; supported are FLOAT, FLOAT16, BFLOAT16, DOUBLE, (U)INT8 to (U)INT64, BOOL and STRING"
            )));
        }
    })
}

fn inline(tensor: &TensorProto, dtype: DType, shape: Shape, bytes: usize) -> LoadResult<Constant> {
    let stored = typed_elements(tensor, dtype, bytes)?;
    let (found, unit) = match &stored {
        None => (tensor.raw_data.len(), "bytes"),
        Some(stored) => (stored.len(), "bytes once packed"),
    };
    if found != bytes {
        return Err(LoadError::malformed(format!(
            "its data has {found} {unit}, but a {dtype} tensor of shape {shape} has {bytes}"
        )));
    }
    let constant = Constant::new(dtype, shape, stored.as_deref().unwrap_or(&tensor.raw_data))?;
    if dtype == DType::Bool
        && let Some(byte) = constant.bytes().iter().find(|byte| **byte > 1)
    {
        return Err(LoadError::malformed(format!("one of its BOOL elements is {byte}, a BOOL is 0 or 1")));
    }
    Ok(constant)
}

/// The elements from the field for `dtype`, packed; `None` when they are in `raw_data`. Packs nothing whose count is wrong.
fn typed_elements(tensor: &TensorProto, dtype: DType, bytes: usize) -> LoadResult<Option<Vec<u8>>> {
    let size = dtype.size().unwrap_or(1);
    let elements = bytes / size;
    let count = match dtype {
        DType::Fp32 => tensor.float_data.len(),
        DType::Fp64 => tensor.double_data.len(),
        DType::Int64 => tensor.int64_data.len(),
        DType::Uint32 | DType::Uint64 => tensor.uint64_data.len(),
        _ => tensor.int32_data.len(),
    };
    if !tensor.raw_data.is_empty() || (count == 0 && elements == 0) {
        return Ok(None);
    }
    if count != elements {
        return Err(LoadError::malformed(format!(
            "its data has {count} elements, its shape {:?} says {elements}",
            tensor.dims
        )));
    }
    Ok(Some(match dtype {
        DType::Fp32 => bytemuck::cast_slice(&tensor.float_data).to_vec(),
        DType::Fp64 => bytemuck::cast_slice(&tensor.double_data).to_vec(),
        DType::Int64 => bytemuck::cast_slice(&tensor.int64_data).to_vec(),
        DType::Uint64 => bytemuck::cast_slice(&tensor.uint64_data).to_vec(),
        DType::Uint32 => tensor.uint64_data.iter().flat_map(|value| value.to_le_bytes()[..4].to_vec()).collect(),
        _ => tensor.int32_data.iter().flat_map(|value| value.to_le_bytes()[..size.min(4)].to_vec()).collect(),
    }))
}

/// Names `tensor` in an error about it.
pub fn about(tensor: &TensorProto, error: LoadError) -> LoadError {
    error.context(format_args!("constant {}", quoted(&tensor.name)))
}
