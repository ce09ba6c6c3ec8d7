//! Constants of a graph: immutable bytes with a type and a shape, shared by reference count and aligned for every element
//! type. It never holds BYTES. The reader and the passes make them; devices pack them.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytemuck::AnyBitPattern;
use half::{bf16, f16};
use insula_core::{DType, Error, Result, Shape, TensorView};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

/// The position of a constant among its graph's or model's constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantId(pub u32);

impl ConstantId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An immutable tensor; clones share its bytes.
#[derive(Clone)]
pub struct Constant {
    dtype: DType,
    shape: Shape,
    words: Arc<[u64]>,
    length: usize,
    /// Made when it is first asked for; clones and reshaped ones share it.
    hash: Arc<OnceLock<[u8; 32]>>,
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }
}

impl Eq for Constant {}

impl Constant {
    /// A constant of `bytes`: row-major, little-endian. Fails when their count is not exactly that of `shape` and `dtype`, and for BYTES.
    pub fn new(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Constant> {
        let expected = shape.bytes(dtype)?.ok_or_else(|| {
            Error::invalid(format!("a constant of type {dtype} is not supported, numbers and booleans are"))
        })?;
        if bytes.len() != expected {
            return Err(Error::invalid(format!(
                "a {dtype} constant of shape {shape} has {} bytes, expected {expected}",
                bytes.len()
            )));
        }
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Ok(Constant { dtype, shape, words: words.into(), length: bytes.len(), hash: Arc::default() })
    }

    /// SHA-256 of the elements and their type, whatever the shape.
    pub fn content_hash(&self) -> [u8; 32] {
        *self.hash.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update(self.dtype.name());
            hash.update([0]);
            hash.update(self.bytes());
            hash.finalize().into()
        })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements: row-major, little-endian, aligned to 8.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice::<u64, u8>(&self.words)[..self.length]
    }

    /// The elements as a slice of `T`. Fails when `T` does not divide the bytes.
    pub fn typed<T: AnyBitPattern>(&self) -> Result<&[T]> {
        self.view().typed()
    }

    /// As a view.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { dtype: self.dtype, shape: &self.shape, bytes: self.bytes() }
    }

    /// The same bytes under another shape. Fails when the number of elements differs.
    pub fn reshaped(&self, shape: Shape) -> Result<Constant> {
        if shape.elements() != self.shape.elements() {
            return Err(Error::invalid(format!("{} does not have as many elements as {shape}", self.shape)));
        }
        Ok(Constant { shape, ..self.clone() })
    }

    /// A copy whose axis `i` is axis `permutation[i]` of this one. Fails when that is no permutation of the axes.
    pub fn transposed(&self, permutation: &[usize]) -> Result<Constant> {
        let rank = self.shape.rank();
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, rank);
        for axis in (1..rank).rev() {
            strides[axis - 1] = strides[axis] * self.shape.dims()[axis].max(1);
        }
        let mut sorted: SmallVec<[usize; 4]> = permutation.into();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank) {
            return Err(Error::invalid(format!("{permutation:?} is not a permutation of the axes of {}", self.shape)));
        }
        let dims: SmallVec<[usize; 4]> = permutation.iter().map(|&axis| self.shape.dims()[axis]).collect();
        let strides: SmallVec<[usize; 4]> = permutation.iter().map(|&axis| strides[axis]).collect();
        let size = self.dtype.size().unwrap_or(1);
        let (from, mut to) = (self.bytes(), Vec::with_capacity(self.length));
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, rank);
        let mut position = 0;
        for _ in 0..self.shape.elements() {
            to.extend_from_slice(&from[position * size..(position + 1) * size]);
            for axis in (0..rank).rev() {
                index[axis] += 1;
                position += strides[axis];
                if index[axis] < dims[axis] {
                    break;
                }
                position -= strides[axis] * dims[axis];
                index[axis] = 0;
            }
        }
        Constant::new(self.dtype, Shape::new(&dims)?, &to)
    }

    /// The elements as f32. Fails for other types than FP32 and FP16.
    pub fn to_f32(&self) -> Result<Cow<'_, [f32]>> {
        match self.dtype {
            DType::Fp32 => Ok(Cow::Borrowed(self.typed::<f32>()?)),
            DType::Fp16 => Ok(Cow::Owned(self.typed::<f16>()?.iter().map(|value| value.to_f32()).collect())),
            other => Err(Error::invalid(format!("a constant of type {other} where FP32 or FP16 was expected"))),
        }
    }

    /// A constant of `values` stored as `dtype`, FP32 or FP16.
    pub fn of_f32(dtype: DType, shape: Shape, values: &[f32]) -> Result<Constant> {
        match dtype {
            DType::Fp32 => Constant::new(dtype, shape, bytemuck::cast_slice(values)),
            DType::Fp16 => {
                let halves: Vec<f16> = values.iter().map(|value| f16::from_f32(*value)).collect();
                Constant::new(dtype, shape, bytemuck::cast_slice(&halves))
            }
            other => Err(Error::invalid(format!("FP32 values cannot be stored as {other}"))),
        }
    }

    /// A constant of `values` converted to `dtype`, any type but BYTES: integers truncate and saturate, what is not zero is true.
    pub fn of_f64(dtype: DType, shape: Shape, values: &[f64]) -> Result<Constant> {
        fn bytes<const N: usize>(values: &[f64], convert: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
            values.iter().flat_map(|value| convert(*value)).collect()
        }
        let bytes = match dtype {
            DType::Bool => bytes(values, |value| [u8::from(value != 0.0)]),
            DType::Uint8 => bytes(values, |value| (value as u8).to_le_bytes()),
            DType::Uint16 => bytes(values, |value| (value as u16).to_le_bytes()),
            DType::Uint32 => bytes(values, |value| (value as u32).to_le_bytes()),
            DType::Uint64 => bytes(values, |value| (value as u64).to_le_bytes()),
            DType::Int8 => bytes(values, |value| (value as i8).to_le_bytes()),
            DType::Int16 => bytes(values, |value| (value as i16).to_le_bytes()),
            DType::Int32 => bytes(values, |value| (value as i32).to_le_bytes()),
            DType::Int64 => bytes(values, |value| (value as i64).to_le_bytes()),
            DType::Fp16 => bytes(values, |value| f16::from_f64(value).to_le_bytes()),
            DType::Bf16 => bytes(values, |value| bf16::from_f64(value).to_le_bytes()),
            DType::Fp32 => bytes(values, |value| (value as f32).to_le_bytes()),
            DType::Fp64 => bytes(values, f64::to_le_bytes),
            DType::Bytes => return Err(Error::invalid("numbers cannot be stored as BYTES")),
        };
        Constant::new(dtype, shape, &bytes)
    }

    /// The elements as i64. Fails for other types than INT32 and INT64.
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        match self.dtype {
            DType::Int64 => Ok(self.typed::<i64>()?.to_vec()),
            DType::Int32 => Ok(self.typed::<i32>()?.iter().map(|value| i64::from(*value)).collect()),
            other => Err(Error::invalid(format!("a constant of type {other} where INT64 was expected"))),
        }
    }
}

impl fmt::Debug for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Constant({} {})", self.dtype, self.shape)
    }
}
