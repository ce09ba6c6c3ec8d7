//! From bytes with an element type to the kernels' slices. The one place where bytes become numbers: each way checks
//! alignment and length and fails instead of guessing.

use bytemuck::{AnyBitPattern, Pod};
use insula_core::DType;
use insula_kernels::{Floats, FloatsMut, Indices, Number};

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

/// `bytes` as indices of `dtype`, which is INT32 or INT64.
pub(super) fn indices(dtype: DType, bytes: &[u8]) -> Result<Indices<'_>, ExecError> {
    match dtype {
        DType::Int32 => Ok(Indices::I32(typed(bytes)?)),
        DType::Int64 => Ok(Indices::I64(typed(bytes)?)),
        other => Err(ExecError::misfit(format!("indices were given as {other}"))),
    }
}

/// Runs `$body` with `$T` standing for the numbers of `$dtype`; `$otherwise` for BYTES. Truth values are numbers of a byte.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $body:expr, $otherwise:expr) => {
        match $dtype {
            insula_core::DType::Bool | insula_core::DType::Uint8 => {
                type $T = u8;
                $body
            }
            insula_core::DType::Uint16 => {
                type $T = u16;
                $body
            }
            insula_core::DType::Uint32 => {
                type $T = u32;
                $body
            }
            insula_core::DType::Uint64 => {
                type $T = u64;
                $body
            }
            insula_core::DType::Int8 => {
                type $T = i8;
                $body
            }
            insula_core::DType::Int16 => {
                type $T = i16;
                $body
            }
            insula_core::DType::Int32 => {
                type $T = i32;
                $body
            }
            insula_core::DType::Int64 => {
                type $T = i64;
                $body
            }
            insula_core::DType::Fp16 => {
                type $T = half::f16;
                $body
            }
            insula_core::DType::Bf16 => {
                type $T = half::bf16;
                $body
            }
            insula_core::DType::Fp32 => {
                type $T = f32;
                $body
            }
            insula_core::DType::Fp64 => {
                type $T = f64;
                $body
            }
            insula_core::DType::Bytes => $otherwise,
        }
    };
}
pub(super) use by_number;

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
