//! From bytes with an element type to the kernels' slices. The one place where bytes become numbers: each way checks
//! alignment and length and fails instead of guessing.

use bytemuck::{AnyBitPattern, Pod};
use insula_core::DType;
use insula_kernels::{Floats, FloatsMut, Number};

use crate::error::ExecError;

/// `bytes` as floats of `dtype`, which is FP16 or FP32.
pub(super) fn floats(dtype: DType, bytes: &[u8]) -> Result<Floats<'_>, ExecError> {
    match dtype {
        DType::Fp16 => Ok(Floats::F16(typed(bytes)?)),
        DType::Fp32 => Ok(Floats::F32(typed(bytes)?)),
        other => Err(not_floats(other)),
    }
}

/// `bytes` as floats of `dtype` to write.
pub(super) fn floats_mut(dtype: DType, bytes: &mut [u8]) -> Result<FloatsMut<'_>, ExecError> {
    match dtype {
        DType::Fp16 => Ok(FloatsMut::F16(typed_mut(bytes)?)),
        DType::Fp32 => Ok(FloatsMut::F32(typed_mut(bytes)?)),
        other => Err(not_floats(other)),
    }
}

/// `bytes` as elements.
pub(super) fn typed<T: AnyBitPattern>(bytes: &[u8]) -> Result<&[T], ExecError> {
    bytemuck::try_cast_slice(bytes)
        .map_err(|reason| ExecError::misfit(format!("{} bytes of a tensor: {reason}", bytes.len())))
}

/// `bytes` as elements to write.
pub(super) fn typed_mut<T: Pod>(bytes: &mut [u8]) -> Result<&mut [T], ExecError> {
    let length = bytes.len();
    bytemuck::try_cast_slice_mut(bytes)
        .map_err(|reason| ExecError::misfit(format!("{length} bytes of a tensor: {reason}")))
}

/// The kernels' name for a type of numbers or truth values; `None` for byte strings.
pub(super) fn number(dtype: DType) -> Option<Number> {
    Some(match dtype {
        DType::Uint8 => Number::U8,
        DType::Uint16 => Number::U16,
        DType::Uint32 => Number::U32,
        DType::Uint64 => Number::U64,
        DType::Int8 => Number::I8,
        DType::Int16 => Number::I16,
        DType::Int32 => Number::I32,
        DType::Int64 => Number::I64,
        DType::Fp16 => Number::F16,
        DType::Bf16 => Number::Bf16,
        DType::Fp32 => Number::F32,
        DType::Fp64 => Number::F64,
        DType::Bool => Number::Bool,
        DType::Bytes => return None,
    })
}

fn not_floats(dtype: DType) -> ExecError {
    ExecError::misfit(format!("an operation on floats was given {dtype}"))
}
