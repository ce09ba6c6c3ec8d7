//! The model that the fuzzed requests are for: one input `x` and one output of the same type and shape.

use std::sync::Arc;

use insula_core::{DType, Dimension, ModelSignature, TensorSpec};

/// A model whose type and rank follow from two bytes.
pub fn signature(dtype: u8, rank: u8) -> Arc<ModelSignature> {
    let dtype = DType::ALL[usize::from(dtype) % DType::ALL.len()];
    let dims = (0..rank % 4).map(|index| Dimension::Symbolic(format!("d{index}").into())).collect();
    let inputs = vec![TensorSpec { name: "x".into(), dtype, dims }];
    Arc::new(ModelSignature { outputs: inputs.clone(), inputs, batched: rank & 4 != 0 && rank % 4 > 0, max_batch: 8 })
}
