//! What of a request decides the plan it runs in: the sizes of its inputs, without the rows of a batched model, and the values of
//! inputs that shapes depend on. Requests of one class can run in one batch. The runtime keeps plans by it.

use insula_core::Shape;
use smallvec::SmallVec;

/// Sizes and values that a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ShapeClass {
    pub(crate) dims: SmallVec<[SmallVec<[usize; 4]>; 2]>,
    pub(crate) values: SmallVec<[(usize, Box<[u8]>); 1]>,
}

/// An input of a request.
#[derive(Debug, Clone, Copy)]
pub struct ClassInput<'a> {
    /// Its shape, rows included.
    pub shape: &'a Shape,
    /// Its elements.
    pub bytes: &'a [u8],
}

impl ShapeClass {
    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> usize {
        let dims: usize = self.dims.iter().map(|dims| size_of_val(dims) + size_of_val(&**dims)).sum();
        let values: usize = self.values.iter().map(|(_, value)| size_of::<(usize, Box<[u8]>)>() + value.len()).sum();
        size_of::<ShapeClass>() + dims + values
    }
}

impl std::fmt::Display for ShapeClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, dims) in self.dims.iter().enumerate() {
            write!(f, "{}{:?}", if index == 0 { "" } else { " " }, &dims[..])?;
        }
        for (input, value) in &self.values {
            write!(f, " value of input {input} ({} bytes)", value.len())?;
        }
        Ok(())
    }
}
