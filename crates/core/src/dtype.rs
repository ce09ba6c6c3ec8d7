//! Element types of tensors, with the names and sizes of the Open Inference Protocol. It converts nothing; decoders,
//! kernels and validation switch on it.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8 bit.
    Uint8,
    /// Unsigned 16 bit.
    Uint16,
    /// Unsigned 32 bit.
    Uint32,
    /// Unsigned 64 bit.
    Uint64,
    /// Signed 8 bit.
    Int8,
    /// Signed 16 bit.
    Int16,
    /// Signed 32 bit.
    Int32,
    /// Signed 64 bit.
    Int64,
    /// IEEE binary16.
    Fp16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    Fp32,
    /// IEEE binary64.
    Fp64,
    /// Byte strings, each behind a four-byte little-endian length.
    Bytes,
}

impl DType {
    /// Every type.
    pub const ALL: [DType; 14] = [
        DType::Bool,
        DType::Uint8,
        DType::Uint16,
        DType::Uint32,
        DType::Uint64,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::Fp16,
        DType::Bf16,
        DType::Fp32,
        DType::Fp64,
        DType::Bytes,
    ];

    /// The protocol's name, e.g. `FP32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "BOOL",
            DType::Uint8 => "UINT8",
            DType::Uint16 => "UINT16",
            DType::Uint32 => "UINT32",
            DType::Uint64 => "UINT64",
            DType::Int8 => "INT8",
            DType::Int16 => "INT16",
            DType::Int32 => "INT32",
            DType::Int64 => "INT64",
            DType::Fp16 => "FP16",
            DType::Bf16 => "BF16",
            DType::Fp32 => "FP32",
            DType::Fp64 => "FP64",
            DType::Bytes => "BYTES",
        }
    }

    /// The type with the protocol's `name`, case-sensitive as the protocol is.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes an element; `None` for [`DType::Bytes`], whose elements vary.
    pub const fn size(self) -> Option<usize> {
        match self {
            DType::Bool | DType::Uint8 | DType::Int8 => Some(1),
            DType::Uint16 | DType::Int16 | DType::Fp16 | DType::Bf16 => Some(2),
            DType::Uint32 | DType::Int32 | DType::Fp32 => Some(4),
            DType::Uint64 | DType::Int64 | DType::Fp64 => Some(8),
            DType::Bytes => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_types() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::from_name("fp32"), None);
    }
}
