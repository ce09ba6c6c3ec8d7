//! The wall: the one function that turns a declared shape, a type and bytes into a checked tensor, for every format and
//! transport alike. In a batch that mixes tenants, nothing else stands between one caller's bytes and another's rows.
//! A [`CheckedTensor`] can be made nowhere else.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::signature::{Dimension, TensorSpec};
use crate::tensor::TensorSlot;

/// What a caller says of a tensor, once sign, rank, overflow and the model's own dimensions have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorClaim {
    name: Box<str>,
    input: usize,
    dtype: DType,
    shape: Shape,
    bytes: Option<usize>,
}

/// A tensor whose bytes are known to be exactly what its shape and type say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedTensor {
    input: usize,
    dtype: DType,
    shape: Shape,
    slot: TensorSlot,
    bytes: usize,
}

impl TensorClaim {
    /// Checks what is declared for input number `input` against its `spec`. The error names the input and the dimension at fault.
    pub fn new(spec: &TensorSpec, input: usize, dtype: DType, declared: &[i64]) -> Result<TensorClaim> {
        let name = &*spec.name;
        if dtype != spec.dtype {
            return Err(Error::invalid(format!(
                "input `{name}` has datatype {dtype}, the model expects {}",
                spec.dtype
            )));
        }
        if declared.len() != spec.dims.len() {
            return Err(Error::invalid(format!(
                "input `{name}` has shape {declared:?} with {} dimensions, the model expects {} ({:?})",
                declared.len(),
                spec.dims.len(),
                spec.protocol_shape()
            )));
        }
        let mut dims = smallvec::SmallVec::<[usize; 4]>::new();
        for (index, (&size, expected)) in declared.iter().zip(&spec.dims).enumerate() {
            dims.push(check_dimension(name, declared, index, size, expected, &spec.protocol_shape())?);
        }
        let shape = Shape::new(&dims).map_err(|error| error.context(format_args!("input `{name}`")))?;
        let bytes = shape.bytes(dtype).map_err(|error| error.context(format_args!("input `{name}`")))?;
        Ok(TensorClaim { name: name.into(), input, dtype, shape, bytes })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The input's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The exact number of bytes the tensor must have; `None` for BYTES, whose elements vary.
    pub fn bytes(&self) -> Option<usize> {
        self.bytes
    }

    /// Checks `bytes`, which lie in `slot`, against the claim: the exact count, BOOL values of 0 and 1, and for BYTES as
    /// many length-prefixed elements as the shape says with nothing left over.
    pub fn verify(&self, bytes: &[u8], slot: TensorSlot) -> Result<CheckedTensor> {
        match self.bytes {
            Some(expected) if expected != bytes.len() => {
                return Err(Error::invalid(format!(
                    "input `{}` has {} bytes of data, a {} tensor of shape {} has {expected}",
                    self.name,
                    bytes.len(),
                    self.dtype,
                    self.shape
                )));
            }
            Some(_) => {}
            None => self.verify_elements(bytes)?,
        }
        if self.dtype == DType::Bool
            && let Some(index) = bytes.iter().position(|byte| *byte > 1)
        {
            return Err(Error::invalid(format!(
                "element {index} of input `{}` is {}, a BOOL is 0 or 1",
                self.name, bytes[index]
            )));
        }
        let (input, dtype, shape) = (self.input, self.dtype, self.shape.clone());
        Ok(CheckedTensor { input, dtype, shape, slot, bytes: bytes.len() })
    }

    fn verify_elements(&self, bytes: &[u8]) -> Result<()> {
        let expected = self.shape.elements();
        let mut rest = bytes;
        for index in 0..expected {
            rest = next_element(rest)
                .map_err(|found| {
                    Error::invalid(format!(
                        "element {index} of input `{}` {found}, each BYTES element is a 4-byte little-endian length and as many bytes",
                        self.name
                    ))
                })?
                .1;
        }
        if rest.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "input `{}` has {} bytes after its last element, shape {} has {expected} elements",
            self.name,
            rest.len(),
            self.shape
        )))
    }
}

/// Splits the first length-prefixed element off `bytes`: (element, rest), or what is wrong with it.
pub fn next_element(bytes: &[u8]) -> std::result::Result<(&[u8], &[u8]), String> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<4>() else {
        return Err(format!("has {} bytes where its 4-byte length should be", bytes.len()));
    };
    let length = u32::from_le_bytes(*prefix);
    match usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length)) {
        Some(split) => Ok(split),
        None => Err(format!("says it has {length} bytes, but only {} follow", rest.len())),
    }
}

fn check_dimension(
    name: &str,
    declared: &[i64],
    index: usize,
    size: i64,
    expected: &Dimension,
    model: &[i64],
) -> Result<usize> {
    let wrong = |why: String| {
        Err(Error::invalid(format!("dimension {index} of input `{name}` is {size} in shape {declared:?}: {why}")))
    };
    let Ok(found) = usize::try_from(size) else {
        return wrong("a request's dimensions must be positive (-1 is only for a model's own description)".into());
    };
    if found == 0 && *expected != Dimension::Fixed(0) {
        return wrong("a request needs at least one element in every dimension".into());
    }
    match expected {
        Dimension::Fixed(fixed) if *fixed != found => wrong(format!("the model expects {model:?}")),
        _ => Ok(found),
    }
}

impl CheckedTensor {
    /// The position of the model's input that this tensor is for.
    pub fn input(&self) -> usize {
        self.input
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where the bytes lie.
    pub fn slot(&self) -> TensorSlot {
        self.slot
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(dtype: DType, columns: usize) -> TensorSpec {
        TensorSpec { name: "x".into(), dtype, dims: vec![Dimension::Symbolic("n".into()), Dimension::Fixed(columns)] }
    }

    fn check(dtype: DType, declared: &[i64], bytes: &[u8]) -> Result<CheckedTensor> {
        TensorClaim::new(&spec(dtype, 4), 0, dtype, declared)?.verify(bytes, TensorSlot(0))
    }

    #[test]
    fn negative_and_zero_dimensions_are_named() {
        for declared in [[-1i64, 4], [1, -4], [0, 4], [i64::MIN, 4]] {
            let error = check(DType::Fp32, &declared, &[0; 16]).unwrap_err();
            assert!(error.message().contains("dimension"), "{error}");
        }
    }

    #[test]
    fn the_byte_count_is_exact() {
        assert!(check(DType::Fp32, &[1, 4], &[0; 16]).is_ok());
        for wrong in [0, 15, 17, 28, 32] {
            assert!(check(DType::Fp32, &[1, 4], &vec![0; wrong]).is_err());
        }
    }

    #[test]
    fn products_near_the_top_do_not_wrap() {
        assert!(check(DType::Fp64, &[i64::MAX, 4], &[]).is_err());
        assert!(check(DType::Fp64, &[1 << 61, 4], &[]).is_err());
    }

    #[test]
    fn byte_strings_are_walked_to_the_last_byte() {
        let element = |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text].concat();
        let good = [element(b"ab"), element(b""), element(b"c"), element(b"defg")].concat();
        assert!(check(DType::Bytes, &[1, 4], &good).is_ok());
        let mut long = good.clone();
        long[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
        for bad in [
            &good[..good.len() - 1],
            &good[..6],
            &[good.as_slice(), &element(b"x")].concat()[..],
            &long[..],
            b"\x01\x00",
            b"",
        ] {
            assert!(check(DType::Bytes, &[1, 4], bad).is_err());
        }
    }

    #[test]
    fn a_bool_is_zero_or_one() {
        assert!(check(DType::Bool, &[1, 4], &[0, 1, 1, 0]).is_ok());
        assert!(check(DType::Bool, &[1, 4], &[0, 1, 2, 0]).unwrap_err().message().contains("element 2"));
    }

    proptest! {
        #[test]
        fn whatever_passes_has_exactly_the_bytes_of_its_shape(rows in any::<i64>(), columns in any::<i64>(), length in 0usize..200) {
            if let Ok(tensor) = check(DType::Fp16, &[rows, columns], &vec![0; length]) {
                prop_assert_eq!(tensor.shape().elements() * 2, length);
                prop_assert_eq!(tensor.shape().dims(), &[rows as usize, 4][..]);
            }
        }

        #[test]
        fn any_bytes_are_either_whole_elements_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if check(DType::Bytes, &[1, 4], &bytes).is_ok() {
                let mut rest = &bytes[..];
                for _ in 0..4 {
                    rest = next_element(rest).unwrap().1;
                }
                prop_assert!(rest.is_empty());
            }
        }
    }
}
