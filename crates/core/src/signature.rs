//! What a model takes and gives: names, types and dimensions, symbolic ones included. Made by the model crate at load,
//! read by decoders, validation and metadata answers. It holds no data.

use crate::dtype::DType;
use crate::error::{Error, Result};

/// One dimension of a model's input or output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Always this many.
    Fixed(usize),
    /// Chosen by the request; the name ties equal dimensions together.
    Symbolic(Box<str>),
}

/// A model's input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// The name callers use.
    pub name: Box<str>,
    /// The element type.
    pub dtype: DType,
    /// The dimensions, outermost first.
    pub dims: Vec<Dimension>,
}

/// All inputs and outputs of one model version, and how its requests may be batched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSignature {
    /// Inputs in the model's order.
    pub inputs: Vec<TensorSpec>,
    /// Outputs in the model's order.
    pub outputs: Vec<TensorSpec>,
    /// Whether dimension 0 of every input and output counts independent rows.
    pub batched: bool,
    /// The most rows a request may have (1 when not batched).
    pub max_batch: usize,
}

impl ModelSignature {
    /// The position of the input called `name`; the error lists what there is.
    pub fn input(&self, name: &str) -> Result<usize> {
        find(&self.inputs, "input", name)
    }

    /// The position of the output called `name`; the error lists what there is.
    pub fn output(&self, name: &str) -> Result<usize> {
        find(&self.outputs, "output", name)
    }
}

impl TensorSpec {
    /// The dimensions as the protocol shows them: -1 for symbolic ones.
    pub fn protocol_shape(&self) -> Vec<i64> {
        let shown = |dim: &Dimension| match dim {
            Dimension::Fixed(size) => i64::try_from(*size).unwrap_or(i64::MAX),
            Dimension::Symbolic(_) => -1,
        };
        self.dims.iter().map(shown).collect()
    }
}

fn find(specs: &[TensorSpec], what: &str, name: &str) -> Result<usize> {
    specs.iter().position(|spec| &*spec.name == name).ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        let known: Vec<_> = specs.iter().map(|spec| format!("`{}`", spec.name)).collect();
        Error::invalid(format!("the model has no {what} named {shown:?}; its {what}s are {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> TensorSpec {
        TensorSpec {
            name: "x".into(),
            dtype: DType::Fp32,
            dims: vec![Dimension::Symbolic("batch".into()), Dimension::Fixed(4)],
        }
    }

    #[test]
    fn symbolic_dimensions_are_minus_one_in_the_protocol() {
        assert_eq!(spec().protocol_shape(), [-1, 4]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let signature = ModelSignature { inputs: vec![spec()], outputs: vec![], batched: true, max_batch: 32 };
        assert!(signature.input("y").unwrap_err().message().contains("`x`"));
    }
}
