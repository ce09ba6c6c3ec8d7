//! Shapes of concrete tensors: dimensions without sign and products that cannot overflow unseen. It never holds a
//! symbolic dimension (see `signature`). Everyone who sizes memory uses it.

use std::fmt;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};

/// The most dimensions a tensor may have.
pub const MAX_RANK: usize = 8;

/// The dimensions of a tensor, outermost first. Invariant: at most [`MAX_RANK`] of them, and their product fits `usize`.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Shape {
    /// A shape of `dims`. Fails when there are too many or when their product overflows.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(Error::invalid(format!(
                "a tensor has {} dimensions, at most {MAX_RANK} are supported",
                dims.len()
            )));
        }
        let product = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
        match product {
            Some(_) => Ok(Shape(dims.into())),
            None => Err(Error::invalid(format!("the product of the dimensions {dims:?} overflows"))),
        }
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// How many dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many elements (1 for a scalar).
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// Bytes of a tensor of this shape; `None` for [`DType::Bytes`], an error on overflow.
    pub fn bytes(&self, dtype: DType) -> Result<Option<usize>> {
        let Some(size) = dtype.size() else { return Ok(None) };
        match self.elements().checked_mul(size) {
            Some(bytes) => Ok(Some(bytes)),
            None => {
                Err(Error::invalid(format!("a {dtype} tensor of shape {self} has more bytes than can be addressed")))
            }
        }
    }

    /// The same shape with its first dimension replaced by `rows`. Fails for a scalar or when the product overflows.
    pub fn with_rows(&self, rows: usize) -> Result<Shape> {
        let mut dims = self.0.clone();
        match dims.first_mut() {
            Some(first) => *first = rows,
            None => return Err(Error::invalid("a scalar has no first dimension".to_string())),
        }
        Shape::new(&dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, dim) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn products_that_overflow_are_refused() {
        assert!(Shape::new(&[usize::MAX, 2]).is_err());
        assert!(Shape::new(&[1 << 40, 1 << 40]).is_err());
        assert!(Shape::new(&[usize::MAX]).unwrap().bytes(DType::Fp32).is_err());
        assert!(Shape::new(&[1; MAX_RANK + 1]).is_err());
    }

    #[test]
    fn a_scalar_has_one_element() {
        let scalar = Shape::new(&[]).unwrap();
        assert_eq!((scalar.elements(), scalar.bytes(DType::Fp64).unwrap()), (1, Some(8)));
        assert!(scalar.with_rows(2).is_err());
    }

    proptest! {
        #[test]
        fn a_shape_agrees_with_wide_arithmetic(dims in proptest::collection::vec(any::<u32>(), 0..6)) {
            let dims: Vec<usize> = dims.into_iter().map(|dim| dim as usize).collect();
            // a zero early on hides a later overflow in wide arithmetic only if it comes first, so multiply in order
            let exact = dims.iter().try_fold(1u128, |product, &dim| product.checked_mul(dim as u128).filter(|p| *p <= usize::MAX as u128));
            prop_assert_eq!(Shape::new(&dims).ok().map(|shape| shape.elements() as u128), exact);
        }
    }
}
