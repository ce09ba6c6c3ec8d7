//! Views of tensor data: bytes with a type and a shape. The one function that makes a typed slice checks alignment. A
//! view never owns memory and never changes its tenant.

use bytemuck::AnyBitPattern;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Where a request's tensor lies among the request's own pieces of memory. Only the sink that handed it out can resolve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorSlot(pub u32);

/// Bytes of a tensor with their type and shape.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: &'a Shape,
    /// Row-major, little-endian.
    pub bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// The elements as a slice of `T`. Fails when the bytes are not aligned for `T` or not a whole number of them.
    pub fn typed<T: AnyBitPattern>(&self) -> Result<&'a [T]> {
        bytemuck::try_cast_slice(self.bytes).map_err(|reason| {
            Error::internal("a tensor could not be read in place", format!("{} {}: {reason}", self.dtype, self.shape))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_slice_needs_alignment() {
        let words = [1.0f32, 2.0, 3.0];
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let shape = Shape::new(&[2]).unwrap();
        let aligned = TensorView { dtype: DType::Fp32, shape: &shape, bytes: &bytes[..8] };
        assert_eq!(aligned.typed::<f32>().unwrap(), [1.0, 2.0]);
        let askew = TensorView { dtype: DType::Fp32, shape: &shape, bytes: &bytes[1..9] };
        assert!(askew.typed::<f32>().is_err());
    }
}
